/*
 * rpc_auth.h
 *	  AuthService: roles and credentials.
 */
#ifndef WIGGLE_PROXY_RPC_AUTH_H
#define WIGGLE_PROXY_RPC_AUTH_H

#include "call.h"

extern void rpc_create_key(struct call *call);
extern void rpc_add_certificate(struct call *call);
extern void rpc_list_credentials(struct call *call);
extern void rpc_grant_role(struct call *call);
extern void rpc_revoke_credential(struct call *call);
extern void rpc_put_role(struct call *call);
extern void rpc_list_roles(struct call *call);
extern void rpc_drop_role(struct call *call);

#endif							/* WIGGLE_PROXY_RPC_AUTH_H */
