// What happens to instances and workers.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	wiggle "github.com/hadielmougy/wiggle-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func signalled() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-signal", wiggle.AwaitSignal{Name: "paid"}, wiggle.Step{Name: "end"})
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-signal", "end", func(c wiggle.Context) (wiggle.Context, error) { return with(c, "seen", c["by"]), nil })
	}).Stop()
	instance := start(client, flow, wiggle.Context{"id": 1})
	send(client, instance, "paid", wiggle.Context{"by": "card"})
	completed(client, instance, wiggle.Context{"id": 1, "by": "card", "seen": "card"})
	refused(client.Signal(ctx, "wfi.s0.nothing", "paid", nil), codes.NotFound, "a signal to nothing")
	return ""
}

func escalation() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-escalation", wiggle.AwaitSignal{Name: "ack", Timeout: 200 * time.Millisecond,
		Escalation: []wiggle.Node{wiggle.Step{Name: "page"}}}, wiggle.Step{Name: "end"})
	late := register(client, "go-late", wiggle.AwaitSignal{Name: "ack", Timeout: 200 * time.Millisecond})
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-escalation", "page", put("paged", true)).Handle("go-escalation", "end", put("end", true))
	}).Stop()
	completed(client, start(client, flow, wiggle.Context{}), wiggle.Context{"paged": true, "end": true})
	ended(client, start(client, late, wiggle.Context{}), "FAILED", wiggle.Context{}, "", "ack")
	return ""
}

// command runs our wiggle and returns what it prints.
func command(arguments ...string) []byte {
	var problem bytes.Buffer
	run := exec.Command("wiggle", append(arguments, "--server", address)...)
	run.Stderr = &problem
	out, err := run.Output()
	check(err == nil, "wiggle %s: %v: %s", arguments[0], err, problem.String())
	return out
}

func correlation() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-correlation", wiggle.Step{Name: "a"})
	defer serve(client, func(w *wiggle.Worker) { w.Handle("go-correlation", "a", put("a", 1)) }).Stop()
	key := fmt.Sprintf("go order %d", time.Now().UnixNano())
	instance := start(client, flow, wiggle.Context{}, wiggle.WithCorrelationID(key))
	start(client, flow, wiggle.Context{}, wiggle.WithCorrelationID(key+" more"))
	completed(client, instance, wiggle.Context{"a": 1})
	var found []struct{ ID string }
	text := command("list", "--correlation-id", key, "--json")
	check(json.Unmarshal(text, &found) == nil && len(found) == 1 && found[0].ID == instance,
		"what is found: expected %s, got %s", instance, text)
	return "the Go client gives the id and cannot ask for it: asked with `wiggle list`"
}

func cancel() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-cancel", wiggle.AwaitSignal{Name: "never"})
	instance := start(client, flow, wiggle.Context{"n": 1})
	for _, reason := range []string{"changed my mind", "again"} {
		err := client.Cancel(ctx, instance, reason)
		check(err == nil, "cancel: %v", err)
		ended(client, instance, "CANCELLED", wiggle.Context{"n": 1}, "changed my mind", "")
	}
	refused(client.Signal(ctx, instance, "never", nil), codes.FailedPrecondition, "a signal after the end")
	refused(client.Cancel(ctx, "wfi.s0.nothing", "so"), codes.NotFound, "cancelling nothing")
	return ""
}

// versions: a worker knows the steps of the version that was the newest when it started.
func versions() string {
	client := dial()
	defer client.Close()
	bind := func(step string) *wiggle.Worker {
		return serve(client, func(w *wiggle.Worker) { w.Handle("go-versions", step, put("by", step)) })
	}
	graph := func(version int, step string) {
		registerVersion(client, "go-versions", version, wiggle.AwaitSignal{Name: "go"}, wiggle.Step{Name: step, Queue: "go-versions-" + step})
	}
	graph(1, "old")
	first := start(client, "go-versions", wiggle.Context{})
	old := bind("old")
	defer old.Stop()
	graph(2, "new")
	defer bind("new").Stop()
	second := start(client, "go-versions", wiggle.Context{})
	third := start(client, "go-versions", wiggle.Context{}, wiggle.WithVersion(1))
	for _, one := range []struct {
		instance string
		version  int
		by       string
	}{{first, 1, "old"}, {second, 2, "new"}, {third, 1, "old"}} {
		send(client, one.instance, "go", nil)
		equal(completed(client, one.instance, wiggle.Context{"by": one.by}).Version, one.version, "the version")
	}
	other := must(wiggle.Graph{Name: "go-versions", Version: 1, Steps: []wiggle.Node{wiggle.Step{Name: "other"}}}.Compile())
	_, err := client.Register(ctx, other)
	refused(err, codes.FailedPrecondition, "another graph in a version that is there")
	_, err = client.Start(ctx, "go-versions", nil, wiggle.WithVersion(3))
	refused(err, codes.NotFound, "a version that is not there")
	return ""
}

func workerKilled() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-killed", wiggle.Step{Name: "a"})
	instance := start(client, flow, wiggle.Context{"n": 7})
	holder := exec.Command(must(os.Executable()), "hold", address, "go-killed", "a")
	holder.Stderr = os.Stderr
	out := must(holder.StdoutPipe())
	check(holder.Start() == nil, "the holder does not start")
	line, err := bufio.NewReader(out).ReadString('\n')
	holder.Process.Kill()
	holder.Wait()
	check(err == nil && line == "holding 7\n", "what the holder said: %q, %v", line, err)
	equal(must(client.Instance(ctx, instance)).Status, "RUNNING", "the status when the worker is dead")
	defer serve(client, func(w *wiggle.Worker) { w.Handle("go-killed", "a", put("by", "the second")) }).Stop()
	completed(client, instance, wiggle.Context{"n": 7, "by": "the second"})
	return ""
}

// patient calls again while nobody listens: the calls of a caller fail fast, those of a worker wait.
func patient[T any](call func() (T, error)) T {
	var value T
	until(func() bool {
		got, err := call()
		check(err == nil || status.Code(err) == codes.Unavailable, "a call while the proxy drains: %v", err)
		value = got
		return err == nil
	}, "an answer")
	return value
}

func drain() string {
	const count = 300
	client := must(wiggle.Dial(os.Getenv("WIGGLE_DRAIN_ADDRESS")))
	defer client.Close()
	flow := register(client, "go-drain", wiggle.Step{Name: "a"}, wiggle.Step{Name: "b"}, wiggle.Step{Name: "c"})
	var done atomic.Int32
	var once sync.Once
	half := make(chan struct{})
	work := func(c wiggle.Context) (wiggle.Context, error) {
		if done.Add(1) >= count {
			once.Do(func() { close(half) })
		}
		return wiggle.Context{"n": c["n"].(float64) + 1}, nil
	}
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-drain", "a", work).Handle("go-drain", "b", work).Handle("go-drain", "c", work)
	}).Stop()
	instances := make([]string, count)
	for i := range instances {
		instances[i] = start(client, flow, wiggle.Context{"n": i})
	}
	select {
	case <-half:
	case <-time.After(patience):
		check(false, "the worker did %d steps in %s", done.Load(), patience)
	}
	pid := must(strconv.Atoi(os.Getenv("WIGGLE_DRAIN_PID")))
	check(syscall.Kill(pid, syscall.SIGTERM) == nil, "no process %d", pid)
	for i, instance := range instances {
		until(func() bool {
			view := patient(func() (*wiggle.InstanceView, error) { return client.Instance(ctx, instance) })
			if !view.IsTerminal() {
				return false
			}
			equal(view.Status, "COMPLETED", "the status of an instance")
			equal(view.Context, wiggle.Context{"n": i + 3}, "the context of an instance")
			return true
		}, "the end of "+instance)
	}
	completed(client, patient(func() (string, error) { return client.Start(ctx, flow, wiggle.Context{"n": 0}) }),
		wiggle.Context{"n": 3})
	return fmt.Sprintf("%d instances, %d steps done twice", count, done.Load()-3*(count+1))
}

const two = `{"workflow": "go-two", "version": 1, "steps": [
	{"task": "first"}, {"gate": "enough", "queue": "go-two-sh"}, {"task": "shell", "queue": "go-two-sh"}, {"task": "last"}]}`

// twoLanguages: a workflow that neither worker wrote.
func twoLanguages() string {
	client := dial()
	defer client.Close()
	check(os.WriteFile("go-two.json", []byte(two), 0o600) == nil, "go-two.json cannot be written")
	command("register", "go-two.json")
	shell := exec.Command("wiggle", "work", "--server", address, "--queue", "go-two-sh", "--step", "enough=grep -q Go",
		"--step", `shell=sed 's/}$/, "second": "sh"}/'`)
	shell.Stdout, shell.Stderr = os.Stderr, os.Stderr
	check(shell.Start() == nil, "wiggle work does not start")
	defer func() {
		shell.Process.Signal(syscall.SIGTERM)
		err := shell.Wait()
		check(err == nil, "wiggle work ended with %v", err)
	}()
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-two", "first", put("first", "Go")).
			Handle("go-two", "last", func(c wiggle.Context) (wiggle.Context, error) {
				return with(c, "last", fmt.Sprint(c["first"], ", ", c["second"])), nil
			})
	}).Stop()
	completed(client, start(client, "go-two", wiggle.Context{"n": 1.5}),
		wiggle.Context{"n": 1.5, "first": "Go", "second": "sh", "last": "Go, sh"})
	return ""
}

type orderHandlers struct{}

func (orderHandlers) TakeOrder(c wiggle.Context) (wiggle.Context, error) {
	return with(c, "taken", true), nil
}
func (orderHandlers) InStock(c wiggle.Context) (bool, error)        { return c["quantity"].(float64) > 0, nil }
func (orderHandlers) Notify(wiggle.Context) error                   { return nil }
func (orderHandlers) CompensateTakeOrder(wiggle.Compensation) error { return nil }

func handlersOfAStruct() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-struct", wiggle.Step{Name: "take-order", Compensate: true}, wiggle.Gate{Name: "in-stock"},
		wiggle.Effect{Name: "notify"})
	defer serve(client, func(w *wiggle.Worker) { w.RegisterHandlers("go-struct", orderHandlers{}) }).Stop()
	completed(client, start(client, flow, wiggle.Context{"quantity": 2}), wiggle.Context{"quantity": 2, "taken": true})
	return ""
}

// mistakes of a worker at the time of a task fail the instance by what the client says of them.
func mistakes() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-mistakes", wiggle.Step{Name: "known"}, wiggle.Step{Name: "unknown"})
	plainStep := register(client, "go-no-item", wiggle.Step{Name: "a"})
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-mistakes", "known", put("a", 1)).
			HandleItem("go-no-item", "a", func(wiggle.Context, any) (any, error) { return nil, nil })
	}).Stop()
	ended(client, start(client, flow, wiggle.Context{}), "FAILED", wiggle.Context{"a": 1}, "",
		`unknown: no handler registered for activity "go-mistakes#unknown"`)
	ended(client, start(client, plainStep, wiggle.Context{}), "FAILED", nil, "", "is not a forEach item step")
	return ""
}

// mistakenBinding: what a worker reads of the registered graph tells it of its mistakes at its start.
func mistakenBinding() string {
	client := dial()
	defer client.Close()
	register(client, "go-binding", wiggle.Step{Name: "a", Compensate: true}, wiggle.Gate{Name: "b"})
	refuses := func(text string, bind func(*wiggle.Worker)) {
		worker := wiggle.NewWorker(client, "go-mistaken")
		bind(worker)
		err := worker.Start(ctx)
		if err == nil {
			worker.Stop()
		}
		check(err != nil && strings.Contains(err.Error(), text), "expected %q, got %v", text, err)
	}
	handler := put("x", 1)
	refuses("available: [a b]", func(w *wiggle.Worker) { w.Handle("go-binding", "c", handler) })
	refuses("use HandleGate()", func(w *wiggle.Worker) { w.Handle("go-binding", "b", handler) })
	refuses("binds no compensator", func(w *wiggle.Worker) { w.Handle("go-binding", "a", handler) })
	refuses("is not registered", func(w *wiggle.Worker) { w.Handle("go-unknown", "a", handler) })
	return ""
}

// resolver: without a coordinator every namespace and every instance is at one address.
func resolver() string {
	resolver := wiggle.NewDirectResolver(address)
	defer resolver.Close()
	client := must(resolver.ClientForNamespace(ctx, "any"))
	instance := start(client, register(client, "go-resolver", wiggle.Sleep{For: time.Millisecond}), wiggle.Context{})
	completed(must(resolver.ClientForInstance(ctx, instance)), instance, wiggle.Context{})
	equal(must(resolver.ActiveCellTargets(ctx, "any")), []string{address}, "the targets")
	return ""
}

// orderExample is a program of wiggle-go itself, unchanged.
func orderExample() string {
	if example == "" {
		panic(skipped("no program was given with -example"))
	}
	run := exec.Command(example)
	run.Env = append(os.Environ(), "WIGGLE_URL="+address)
	run.Stderr = os.Stderr
	out, err := run.Output()
	check(err == nil, "%s: %v", example, err)
	for _, part := range []string{"registered go-order v", "notified A-1001 (payment auth-A-1001)", "status=COMPLETED",
		"orderId:A-1001", "paymentRef:auth-A-1001", "quantity:2", "status:VALIDATED"} {
		check(strings.Contains(string(out), part), "%q is not in %q", part, out)
	}
	return ""
}
