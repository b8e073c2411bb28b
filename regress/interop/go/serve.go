package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strings"
	"time"

	wiggle "github.com/hadielmougy/wiggle-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const patience = 60 * time.Second

var (
	address = os.Getenv("WIGGLE_ADDRESS")
	ctx     = context.Background()
	quickly = wiggle.RetryFixed(5, 50*time.Millisecond)
)

func dial() *wiggle.Client { return must(wiggle.Dial(address)) }

// register makes known what these steps are and returns it. The client cannot
// send a fork's list of branches, a []string; JSON makes it an []any.
func register(client *wiggle.Client, name string, steps ...wiggle.Node) *wiggle.Blueprint {
	return registerVersion(client, name, 0, steps...)
}

func registerVersion(client *wiggle.Client, name string, version int, steps ...wiggle.Node) *wiggle.Blueprint {
	blueprint := must(wiggle.Graph{Name: name, Version: version, Steps: steps}.Compile())
	blueprint.Definition = plain(blueprint.Definition).(map[string]any)
	got := must(client.Register(ctx, blueprint))
	check(got == blueprint.Version, "the version of %s: expected %d, got %d", name, blueprint.Version, got)
	return blueprint
}

// plain is a value as it comes back from JSON.
func plain(value any) any {
	var out any
	text := must(json.Marshal(value))
	check(json.Unmarshal(text, &out) == nil, "no JSON: %s", text)
	return out
}

// serve starts a worker that bind has given its handlers; the caller stops it.
func serve(client *wiggle.Client, bind func(*wiggle.Worker)) *wiggle.Worker {
	worker := wiggle.NewWorker(client, "go-worker", wiggle.Concurrency(8), wiggle.Lease(5*time.Second))
	bind(worker)
	err := worker.Start(ctx)
	check(err == nil, "the worker does not start: %v", err)
	return worker
}

func start(client *wiggle.Client, workflow any, initial wiggle.Context, options ...wiggle.StartOption) string {
	return must(client.Start(ctx, workflow, initial, options...))
}

// until asks for a condition again and again.
func until(condition func() bool, what string) {
	end := time.Now().Add(patience)
	for !condition() {
		check(time.Now().Before(end), "%s: not within %s", what, patience)
		time.Sleep(20 * time.Millisecond)
	}
}

func equal(got, expected any, what string) {
	check(reflect.DeepEqual(plain(got), plain(expected)), "%s: expected %v, got %v", what, expected, got)
}

// ended waits for this end; of the error it is enough that it contains this text.
func ended(client *wiggle.Client, instance, expected string, result wiggle.Context, reason, text string) *wiggle.InstanceView {
	var view *wiggle.InstanceView
	until(func() bool {
		view = must(client.Instance(ctx, instance))
		return view.Status != "RUNNING" && view.Status != "COMPENSATING"
	}, "the end of "+instance)
	equal(view.Status, expected, "the status ("+view.Error+")")
	equal(view.TerminationReason, reason, "the reason")
	check(strings.Contains(view.Error, text) && (text != "") == (view.Error != ""),
		"the error: expected %q, got %q", text, view.Error)
	if result != nil {
		equal(view.Context, result, "the context")
	}
	return view
}

func completed(client *wiggle.Client, instance string, result wiggle.Context) *wiggle.InstanceView {
	return ended(client, instance, "COMPLETED", result, "", "")
}

// send delivers a signal; it is refused until the instance waits for it.
func send(client *wiggle.Client, instance, name string, payload wiggle.Context) {
	until(func() bool {
		err := client.Signal(ctx, instance, name, payload)
		check(err == nil || status.Code(err) == codes.FailedPrecondition, "the signal %s: %v", name, err)
		return err == nil
	}, "a token that waits for "+name)
}

func refused(err error, code codes.Code, what string) {
	check(err != nil, "%s was accepted", what)
	check(status.Code(err) == code, "%s: expected %s, got %v", what, code, err)
}

// with is a context and more.
func with(context wiggle.Context, key string, value any) wiggle.Context {
	out := maps.Clone(context)
	out[key] = value
	return out
}

// put is a handler that adds to the context.
func put(key string, value any) wiggle.Activity {
	return func(c wiggle.Context) (wiggle.Context, error) { return with(c, key, value), nil }
}
