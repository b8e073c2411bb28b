// The scenario set with wiggle-go, Wiggle's own Go client, by its public API (see
// ../checks.py).
//
//	scenarios [-example PROGRAM] [NAME...]   run all scenarios, or these
//	scenarios hold ADDRESS WORKFLOW STEP     a worker that takes a step and never ends it
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	wiggle "github.com/hadielmougy/wiggle-go"
)

type scenario struct {
	name string
	run  func() string
}

var scenarios = []scenario{
	{"linear", linear}, {"gate", gate}, {"retry", retry}, {"permanent failure", permanentFailure},
	{"sleep", sleep}, {"fork", fork}, {"forEach", forEach}, {"choose", choose}, {"loop", loop},
	{"signal", signalled}, {"escalation", escalation}, {"sub-workflow", subWorkflow}, {"saga", saga},
	{"schedule", notOffered("the Go client has no calls for schedules")},
	{"events", notOffered("the Go client has no calls for events")},
	{"correlation", correlation}, {"cancel", cancel}, {"versions", versions}, {"worker killed", workerKilled},
	{"drain", drain}, {"two languages", twoLanguages},
	{"nested", nested}, {"handlers of a struct", handlersOfAStruct}, {"a worker's mistakes", mistakes},
	{"a mistaken binding", mistakenBinding}, {"resolver", resolver}, {"example: order", orderExample},
}

var example string

// failed and skipped are what a scenario panics with.
type failed string
type skipped string

func notOffered(why string) func() string {
	return func() string { panic(skipped(why)) }
}

func check(holds bool, format string, arguments ...any) {
	if !holds {
		panic(failed(fmt.Sprintf(format, arguments...)))
	}
}

func must[T any](value T, err error) T {
	check(err == nil, "%v", err)
	return value
}

func report(s scenario) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case skipped:
			fmt.Printf("skip %s - %s\n", s.name, why)
		case failed:
			fmt.Printf("not ok %s - %s\n", s.name, strings.Join(strings.Fields(string(why)), " "))
		default:
			fmt.Fprintf(os.Stderr, "%v\n%s", why, debug.Stack())
			fmt.Printf("not ok %s - %v\n", s.name, why)
		}
	}()
	if remark := s.run(); remark != "" {
		fmt.Printf("ok %s - %s\n", s.name, remark)
	} else {
		fmt.Printf("ok %s\n", s.name)
	}
}

func hold(address, workflow, step string) {
	client := must(wiggle.Dial(address))
	worker := wiggle.NewWorker(client, "go-holder", wiggle.Lease(2*time.Second))
	worker.Handle(workflow, step, func(c wiggle.Context) (wiggle.Context, error) {
		fmt.Println("holding", c["n"])
		select {}
	})
	check(worker.Start(context.Background()) == nil, "the worker does not start")
	select {}
}

func main() {
	names := os.Args[1:]
	if len(names) == 4 && names[0] == "hold" {
		hold(names[1], names[2], names[3])
	}
	if len(names) > 1 && names[0] == "-example" {
		example, names = names[1], names[2:]
	}
	for _, s := range scenarios {
		if len(names) == 0 || slices.Contains(names, s.name) {
			report(s)
		}
	}
}
