/* SPDX-License-Identifier: MIT */
/*
 * gRPC's server side of one connection, over libnghttp2. It has no socket: bytes are given to it
 * and taken from it, so that a fuzzer can do so. Nothing here blocks, and all of it is for one
 * thread. Messages are protobuf-c's.
 *
 * A call has one message from the client, then any number of messages to it, then a status. Its
 * deadline is the client's business: a client whose time is over cancels the call.
 */
#ifndef KUBERNETES_GRPC_SESSION_H
#define KUBERNETES_GRPC_SESSION_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

/* Bytes of a message, either way. */
#define GRPC_MESSAGE_MAX (4u << 20)

/* Calls of one connection at a time. */
#define GRPC_CALLS_MAX 128

/* gRPC's numbers. */
typedef enum {
    GRPC_OK = 0,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_NOT_FOUND = 5,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
} GrpcStatus;

typedef struct GrpcCall GrpcCall;
typedef struct GrpcSession GrpcSession;

/* @message: of the method's type, valid until the function returns. */
typedef void (*GrpcMethodFunc)(GrpcCall *call, const ProtobufCMessage *message, void *data);

/**
 * GrpcMethod
 * @path: "/package.Service/Method"
 * @input: the type of the client's message
 */
typedef struct {
    const char *path;
    const ProtobufCMessageDescriptor *input;
    GrpcMethodFunc func;
} GrpcMethod;

/**
 * GrpcService - what a server offers
 * @methods: up to one without a path
 * @data: for the methods' functions
 */
typedef struct {
    const GrpcMethod *methods;
    void *data;
} GrpcService;

/* @service must outlive the session. @writable: called when there are bytes to take. */
GrpcSession *grpc_session_new(const GrpcService *service, void (*writable)(void *data), void *data);

/* Its calls end as if their clients were gone. Not from within a method's function. */
void grpc_session_free(GrpcSession *session);

/* FALSE: the client broke the protocol; the connection is to be closed. */
gboolean grpc_session_feed(GrpcSession *session, const guint8 *bytes, gsize count);

/* Bytes for the client, valid until the next call; 0: none now; -1: close the connection. */
gssize grpc_session_take(GrpcSession *session, const guint8 **bytes);

/* Both sides are done with the connection. */
gboolean grpc_session_is_over(GrpcSession *session);

/*
 * A call stays valid as long as somebody has a reference. When the client is gone, what is sent is
 * dropped.
 */
GrpcCall *grpc_call_ref(GrpcCall *call);
void grpc_call_unref(GrpcCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GrpcCall, grpc_call_unref)

/*
 * Sends a message. A client that does not read loses its call when GRPC_MESSAGE_MAX bytes wait for
 * it.
 */
void grpc_call_send(GrpcCall *call, const ProtobufCMessage *message);

/* The last thing of a call. @text: for people; NULL: none. */
void grpc_call_end(GrpcCall *call, GrpcStatus status, const char *text);

/* One message, and the end. */
void grpc_call_answer(GrpcCall *call, const ProtobufCMessage *message);

/* The call has ended, or its client is gone. */
gboolean grpc_call_is_over(const GrpcCall *call);

#endif
