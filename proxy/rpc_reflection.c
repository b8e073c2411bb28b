/*
 * rpc_reflection.c
 *	  grpc.reflection.v1.ServerReflection, and v1alpha, which is the same.
 */
#include <stdio.h>
#include <stdlib.h>

#include "grpc/reflection/v1/reflection.pb-c.h"

#include "buf.h"
#include "descriptors.h"
#include "message.h"
#include "rpc_reflection.h"

typedef Grpc__Reflection__V1__ServerReflectionRequest Request;
typedef Grpc__Reflection__V1__ServerReflectionResponse Response;
typedef Grpc__Reflection__V1__ServiceResponse Service;

#define REQUEST_TYPE	(&grpc__reflection__v1__server_reflection_request__descriptor)
#define ASKED(what)		GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##what
#define ANSWERED(what)	GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##what

static Response
reply_to(Request *request)
{
	Response	reply = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;

	reply.valid_host = request->host;
	reply.original_request = request;
	return reply;
}

static void
send_error(struct call *call, Request *request, enum grpc_status status, const char *message)
{
	Grpc__Reflection__V1__ErrorResponse error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
	Response	reply = reply_to(request);

	error.error_code = status;
	error.error_message = (char *) message;
	reply.message_response_case = ANSWERED(ERROR_RESPONSE);
	reply.error_response = &error;
	message_send(call, &reply.base);
}

/* The file, then what it imports: every client can build them in the reverse order. */
static void
send_file(struct call *call, Request *request, int file, const char *what, const char *name)
{
	Grpc__Reflection__V1__FileDescriptorResponse answer = GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
	Response	reply = reply_to(request);
	ProtobufCBinaryData bytes[DESCRIPTOR_FILES];
	bool		wanted[DESCRIPTOR_FILES] = {false};
	char		message[256];

	if (file < 0)
	{
		snprintf(message, sizeof(message), "%s not found: %.150s", what, name);
		send_error(call, request, GRPC_NOT_FOUND, message);
		return;
	}
	descriptors_closure(file, wanted);
	answer.file_descriptor_proto = bytes;
	for (int i = file; i >= 0; i--)
	{
		size_t		len;

		if (!wanted[i])
			continue;
		bytes[answer.n_file_descriptor_proto].data = (uint8_t *) descriptors_file(i, &len);
		bytes[answer.n_file_descriptor_proto++].len = len;
	}
	reply.message_response_case = ANSWERED(FILE_DESCRIPTOR_RESPONSE);
	reply.file_descriptor_response = &answer;
	message_send(call, &reply.base);
}

static void
add_service(const char *name, void *arg)
{
	Grpc__Reflection__V1__ListServiceResponse *list = arg;
	Service    *service = xmalloc(sizeof(*service));

	grpc__reflection__v1__service_response__init(service);
	service->name = xstrdup(name);
	list->service = xrealloc(list->service, (list->n_service + 1) * sizeof(Service *));
	list->service[list->n_service++] = service;
}

static void
send_services(struct call *call, Request *request)
{
	Grpc__Reflection__V1__ListServiceResponse list = GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
	Response	reply = reply_to(request);

	descriptors_services(add_service, &list);
	reply.message_response_case = ANSWERED(LIST_SERVICES_RESPONSE);
	reply.list_services_response = &list;
	message_send(call, &reply.base);
	for (size_t i = 0; i < list.n_service; i++)
	{
		free(list.service[i]->name);
		free(list.service[i]);
	}
	free(list.service);
}

void
rpc_reflection(struct call *call)
{
	Request    *request = (Request *) message_request(call, REQUEST_TYPE);

	if (request == NULL)
		return;
	switch (request->message_request_case)
	{
		case ASKED(LIST_SERVICES):
			send_services(call, request);
			break;
		case ASKED(FILE_BY_FILENAME):
			send_file(call, request, descriptors_by_name(request->file_by_filename), "file",
					  request->file_by_filename);
			break;
		case ASKED(FILE_CONTAINING_SYMBOL):
			send_file(call, request, descriptors_by_symbol(request->file_containing_symbol), "symbol",
					  request->file_containing_symbol);
			break;
		case ASKED(FILE_CONTAINING_EXTENSION):
		case ASKED(ALL_EXTENSION_NUMBERS_OF_TYPE):
			send_error(call, request, GRPC_NOT_FOUND, "the messages of this server have no extensions");
			break;
		default:
			send_error(call, request, GRPC_INVALID_ARGUMENT, "the request asks for nothing that is known");
			break;
	}
	protobuf_c_message_free_unpacked(&request->base, NULL);
}
