"""gRPC's own Python packages for reflection, health and rich statuses."""
import sys

import grpc


def pieces(site):
    """Import them from where tools.sh put them; grpcio itself is Debian's."""
    path = site.tool("python")
    if path not in sys.path:
        sys.path.insert(0, path)


def reflection(site):
    pieces(site)
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
    with grpc.insecure_channel(site.address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert "com.wiggle.proto.WiggleControlPlane" in database.get_services()
        pool = DescriptorPool(database)
        service = pool.FindServiceByName("com.wiggle.proto.WiggleControlPlane")
        assert service.methods_by_name["PollTasks"].output_type.name == "TaskList"
        assert pool.FindMessageTypeByName("google.protobuf.Value").fields_by_name["struct_value"]


def health(site):
    pieces(site)
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    with grpc.insecure_channel(site.address) as channel:
        health_service = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service="")
        assert health_service.Check(request, timeout=60).status == health_pb2.HealthCheckResponse.SERVING
        call = health_service.Watch(request, timeout=60)
        assert next(call).status == health_pb2.HealthCheckResponse.SERVING
        call.cancel()
        unknown = health_service.Watch(health_pb2.HealthCheckRequest(service="x"), timeout=60)
        assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        unknown.cancel()


def details(site):
    pieces(site)
    from google.rpc import error_details_pb2
    from grpc_status import rpc_status

    def refusal(channel, instance):
        call = channel.unary_unary("/com.wiggle.proto.WiggleControlPlane/GetInstance")
        try:
            call(b"\x0a" + bytes([len(instance)]) + instance.encode(), timeout=60)
        except grpc.RpcError as error:
            return error
        raise AssertionError("%s was found" % instance)

    def unpacked(error):
        """from_call refuses a status that is not the call's own."""
        found = {}
        for detail in rpc_status.from_call(error).details:
            for kind in (error_details_pb2.ErrorInfo, error_details_pb2.RetryInfo):
                if detail.Is(kind.DESCRIPTOR):
                    found[kind.__name__] = kind.FromString(detail.value)
        return found
    with grpc.insecure_channel(site.address) as channel:
        found = unpacked(refusal(channel, "nothing"))
        assert (found["ErrorInfo"].domain, found["ErrorInfo"].reason) == ("wiggle", "NOT_FOUND"), found
        assert "RetryInfo" not in found, found
        found = unpacked(refusal(channel, "wfi.s99.01m8mfs6nv209np4j3trex"))
        assert found["ErrorInfo"].reason == "NOTHING_APPLIED", found
        assert found["RetryInfo"].retry_delay.seconds > 0, found


CHECKS = [
    ("grpcio-reflection builds the protocol", reflection),
    ("grpcio-health-checking: Check and Watch", health),
    ("grpcio-status: ErrorInfo and RetryInfo", details),
]
