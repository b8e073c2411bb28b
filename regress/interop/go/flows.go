// What workflows are made of.
package main

import (
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	wiggle "github.com/hadielmougy/wiggle-go"
)

func linear() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-linear", wiggle.Step{Name: "a"}, wiggle.Step{Name: "b"}, wiggle.Effect{Name: "see"},
		wiggle.Step{Name: "c"})
	seen := make(chan any, 1)
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-linear", "a", func(c wiggle.Context) (wiggle.Context, error) {
			return with(with(c, "n", c["n"].(float64)+1), "drop", true), nil
		}).Handle("go-linear", "b", func(c wiggle.Context) (wiggle.Context, error) {
			return with(c, "drop", nil), nil
		}).HandleEffect("go-linear", "see", func(c wiggle.Context) error {
			seen <- c["n"]
			return nil
		}).Handle("go-linear", "c", func(c wiggle.Context) (wiggle.Context, error) {
			return with(c, "n", c["n"].(float64)*10), nil
		})
	}).Stop()
	values := []any{1, 2.5, nil, map[string]any{"x": true}, map[string]any{}, []any{}}
	instance := start(client, flow, wiggle.Context{"n": 1, "text": "ünïcode", "list": values})
	view := completed(client, instance, wiggle.Context{"n": 20, "text": "ünïcode", "list": values})
	equal(<-seen, 2, "what the effect saw")
	equal(view.Version, flow.Version, "the version")
	check(view.CreatedAt > 0 && view.UpdatedAt >= view.CreatedAt, "the times: %d, %d", view.CreatedAt, view.UpdatedAt)
	found := false
	for _, one := range must(client.ListInstances(ctx, "go-linear", "COMPLETED", 10)) {
		found = found || one.ID == instance
	}
	check(found, "%s is not in the list of completed instances", instance)
	completed(client, start(client, register(client, "go-nothing", wiggle.Sleep{For: time.Millisecond}), nil), wiggle.Context{})
	health, node, _, err := client.Health(ctx)
	check(err == nil && health == "UP" && node != "", "health: %q of %q, %v", health, node, err)
	return release()
}

// release is the client's, as it was built in.
func release() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path != "github.com/hadielmougy/wiggle-go" {
			continue
		}
		if module.Replace != nil {
			return "wiggle-go of " + module.Replace.Path
		}
		return "wiggle-go " + module.Version
	}
	return ""
}

func gate() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-gate", wiggle.Gate{Name: "open"}, wiggle.Step{Name: "after"})
	defer serve(client, func(w *wiggle.Worker) {
		w.HandleGate("go-gate", "open", func(c wiggle.Context) (bool, error) { return c["open"].(bool), nil }).
			Handle("go-gate", "after", put("after", true))
	}).Stop()
	ended(client, start(client, flow, wiggle.Context{"open": false}), "COMPLETED", wiggle.Context{"open": false}, "gated:open", "")
	completed(client, start(client, flow, wiggle.Context{"open": true}), wiggle.Context{"open": true, "after": true})
	return ""
}

func retry() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-retry", wiggle.Step{Name: "flaky", Retry: quickly})
	var calls atomic.Int32
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-retry", "flaky", func(c wiggle.Context) (wiggle.Context, error) {
			n := calls.Add(1)
			if n < 3 {
				return nil, errors.New("not yet")
			}
			return wiggle.Context{"calls": n}, nil
		})
	}).Stop()
	completed(client, start(client, flow, wiggle.Context{}), wiggle.Context{"calls": 3})
	return ""
}

func permanentFailure() string {
	client := dial()
	defer client.Close()
	refuse := register(client, "go-permanent", wiggle.Step{Name: "refuse", Retry: quickly})
	spend := register(client, "go-spent", wiggle.Step{Name: "fail", Retry: wiggle.RetryFixed(2, 10*time.Millisecond)})
	var calls atomic.Int32
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-permanent", "refuse", func(wiggle.Context) (wiggle.Context, error) {
			calls.Add(1)
			return nil, wiggle.Permanent("card %s", "declined")
		}).Handle("go-spent", "fail", func(wiggle.Context) (wiggle.Context, error) {
			return nil, errors.New("always")
		})
	}).Stop()
	ended(client, start(client, refuse, wiggle.Context{"n": 1}), "FAILED", wiggle.Context{"n": 1}, "", "refuse: card declined")
	equal(calls.Load(), 1, "calls of the step")
	ended(client, start(client, spend, wiggle.Context{}), "FAILED", nil, "", "fail: always")
	return ""
}

func sleep() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-sleep", wiggle.Step{Name: "a"}, wiggle.Sleep{Name: "nap", For: 300 * time.Millisecond},
		wiggle.Step{Name: "b"})
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-sleep", "a", put("a", 1)).Handle("go-sleep", "b", put("b", 2))
	}).Stop()
	completed(client, start(client, flow, wiggle.Context{}), wiggle.Context{"a": 1, "b": 2})
	return ""
}

func fork() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-fork", wiggle.Fork{Combine: "merge", Branches: []wiggle.Branch{
		{Name: "left", Steps: []wiggle.Node{wiggle.Step{Name: "l1"}, wiggle.Step{Name: "l2"}}},
		{Name: "right", Steps: []wiggle.Node{wiggle.Gate{Name: "go"}, wiggle.Step{Name: "r"}}},
	}}, wiggle.Step{Name: "end"})
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-fork", "l1", put("mark", "l")).Handle("go-fork", "l2", put("done", "left")).
			HandleGate("go-fork", "go", func(c wiggle.Context) (bool, error) { return c["go"].(bool), nil }).
			Handle("go-fork", "r", put("mark", "r")).
			HandleCombine("go-fork", "merge", func(c wiggle.Context) (wiggle.Context, error) {
				left, right := c["left"].(map[string]any), c["right"].(map[string]any)
				out := wiggle.Context{"go": c["go"], "left": left["mark"], "done": left["done"]}
				if mark, ok := right["mark"]; ok {
					out["right"] = mark
				}
				return out, nil
			}).
			Handle("go-fork", "end", put("end", true))
	}).Stop()
	completed(client, start(client, flow, wiggle.Context{"go": true, "lost": 1}),
		wiggle.Context{"go": true, "left": "l", "done": "left", "right": "r", "end": true})
	completed(client, start(client, flow, wiggle.Context{"go": false}),
		wiggle.Context{"go": false, "left": "l", "done": "left", "end": true})
	return ""
}

// nested: forks and loops over elements in each other's branches and bodies.
func nested() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-nested", wiggle.Fork{Combine: "outer", Branches: []wiggle.Branch{
		{Name: "left", Steps: []wiggle.Node{wiggle.Fork{Combine: "inner", Branches: []wiggle.Branch{
			{Name: "a", Steps: []wiggle.Node{wiggle.Step{Name: "sa"}}},
			{Name: "b", Steps: []wiggle.Node{wiggle.Step{Name: "sb"}}},
		}}, wiggle.Step{Name: "after"}}},
		{Name: "right", Steps: []wiggle.Node{wiggle.ForEach{Name: "rows", Over: "rows", Combine: "table", Body: []wiggle.Node{
			wiggle.ForEach{Name: "cells", Over: "cells", Combine: "row", Body: []wiggle.Node{wiggle.Step{Name: "cell"}}},
			wiggle.Step{Name: "total"},
		}}}},
	}})
	part := func(c wiggle.Context, branch string) any { return c[branch].(map[string]any)["n"] }
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-nested", "sa", put("n", "a")).Handle("go-nested", "sb", put("n", "b")).
			HandleCombine("go-nested", "inner", func(c wiggle.Context) (wiggle.Context, error) {
				return wiggle.Context{"n": part(c, "a").(string) + part(c, "b").(string)}, nil
			}).
			Handle("go-nested", "after", func(c wiggle.Context) (wiggle.Context, error) {
				return wiggle.Context{"n": c["n"].(string) + "!"}, nil
			}).
			HandleItem("go-nested", "cell", func(base wiggle.Context, item any) (any, error) {
				return item.(float64) * base["by"].(float64), nil
			}).
			HandleCombine("go-nested", "row", func(c wiggle.Context) (wiggle.Context, error) {
				return wiggle.Context{"cells": c["cells"]}, nil
			}).
			HandleItem("go-nested", "total", func(_ wiggle.Context, item any) (any, error) {
				sum := 0.0
				for _, cell := range item.(map[string]any)["cells"].([]any) {
					sum += cell.(float64)
				}
				return sum, nil
			}).
			HandleCombine("go-nested", "table", func(c wiggle.Context) (wiggle.Context, error) {
				return wiggle.Context{"n": c["rows"]}, nil
			}).
			HandleCombine("go-nested", "outer", func(c wiggle.Context) (wiggle.Context, error) {
				return wiggle.Context{"left": part(c, "left"), "right": part(c, "right")}, nil
			})
	}).Stop()
	rows := []any{map[string]any{"by": 1, "cells": []any{1, 2}}, map[string]any{"by": 10, "cells": []any{3}}}
	completed(client, start(client, flow, wiggle.Context{"rows": rows}), wiggle.Context{"left": "ab!", "right": []any{3, 30}})
	return ""
}

func forEach() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-each", wiggle.ForEach{Name: "prices", Over: "items", Combine: "sum",
		Body: []wiggle.Node{wiggle.Step{Name: "price"}, wiggle.Step{Name: "round"}}}, wiggle.Step{Name: "end"})
	defer serve(client, func(w *wiggle.Worker) {
		w.HandleItem("go-each", "price", func(base wiggle.Context, item any) (any, error) {
			return item.(float64) * base["rate"].(float64), nil
		}).HandleItem("go-each", "round", func(_ wiggle.Context, item any) (any, error) {
			return float64(int(item.(float64))), nil
		}).HandleCombine("go-each", "sum", func(c wiggle.Context) (wiggle.Context, error) {
			return wiggle.Context{"prices": c["prices"], "items": c["items"]}, nil
		}).Handle("go-each", "end", put("end", true))
	}).Stop()
	list := []any{1, 2, 3}
	completed(client, start(client, flow, wiggle.Context{"rate": 1.5, "items": list}),
		wiggle.Context{"items": list, "prices": []any{1, 3, 4}, "end": true})
	keyed := map[string]any{"a": 2, "b": 4}
	completed(client, start(client, flow, wiggle.Context{"rate": 1.5, "items": keyed}),
		wiggle.Context{"items": keyed, "prices": map[string]any{"a": 3, "b": 6}, "end": true})
	completed(client, start(client, flow, wiggle.Context{"rate": 1.5, "items": []any{}}),
		wiggle.Context{"rate": 1.5, "items": []any{}, "end": true})
	return ""
}

func choose() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-choose", wiggle.Choose{Cases: []wiggle.Case{
		{When: "big", Then: []wiggle.Node{wiggle.Step{Name: "b"}}},
		{When: "some", Then: []wiggle.Node{wiggle.Step{Name: "s"}}},
		{Then: []wiggle.Node{wiggle.Step{Name: "o"}}},
	}}, wiggle.Step{Name: "end"})
	defer serve(client, func(w *wiggle.Worker) {
		w.HandleGate("go-choose", "big", func(c wiggle.Context) (bool, error) { return c["n"].(float64) > 100, nil }).
			HandleGate("go-choose", "some", func(c wiggle.Context) (bool, error) { return c["n"].(float64) > 0, nil }).
			Handle("go-choose", "b", put("took", "big")).Handle("go-choose", "s", put("took", "some")).
			Handle("go-choose", "o", put("took", "none")).Handle("go-choose", "end", put("end", true))
	}).Stop()
	for n, took := range map[int]string{1000: "big", 1: "some", 0: "none"} {
		completed(client, start(client, flow, wiggle.Context{"n": n}), wiggle.Context{"n": n, "took": took, "end": true})
	}
	return ""
}

func loop() string {
	client := dial()
	defer client.Close()
	count := func(name, while, body string, most int) *wiggle.Blueprint {
		return register(client, name, wiggle.DoWhile{While: while, MaxIterations: most, Body: []wiggle.Node{wiggle.Step{Name: body}}},
			wiggle.Step{Name: "end"})
	}
	flow, short := count("go-loop", "more", "inc", 0), count("go-short", "more", "inc", 2)
	defer serve(client, func(w *wiggle.Worker) {
		for _, name := range []string{"go-loop", "go-short"} {
			w.HandleGate(name, "more", func(c wiggle.Context) (bool, error) { return c["n"].(float64) < 5, nil }).
				Handle(name, "inc", func(c wiggle.Context) (wiggle.Context, error) {
					return wiggle.Context{"n": c["n"].(float64) + 1}, nil
				}).Handle(name, "end", put("end", true))
		}
	}).Stop()
	completed(client, start(client, flow, wiggle.Context{"n": 0}), wiggle.Context{"n": 5, "end": true})
	completed(client, start(client, short, wiggle.Context{"n": 3}), wiggle.Context{"n": 5, "end": true})
	ended(client, start(client, short, wiggle.Context{"n": 0}), "FAILED", nil, "", "more")
	return ""
}

func subWorkflow() string {
	client := dial()
	defer client.Close()
	register(client, "go-child", wiggle.Step{Name: "work"})
	flow := register(client, "go-parent", wiggle.SubWorkflow{Name: "run", Workflow: "go-child"}, wiggle.Step{Name: "end"})
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-child", "work", func(c wiggle.Context) (wiggle.Context, error) {
			if c["fail"] == true {
				return nil, wiggle.Permanent("the child's reason")
			}
			return with(c, "child", c["n"].(float64)*2), nil
		}).Handle("go-parent", "end", put("end", true))
	}).Stop()
	completed(client, start(client, flow, wiggle.Context{"n": 4}), wiggle.Context{"n": 4, "child": 8, "end": true})
	ended(client, start(client, flow, wiggle.Context{"n": 4, "fail": true}), "FAILED", nil, "", "the child's reason")
	return ""
}

func saga() string {
	client := dial()
	defer client.Close()
	flow := register(client, "go-saga", wiggle.Step{Name: "reserve", Compensate: true}, wiggle.Effect{Name: "note"},
		wiggle.Step{Name: "charge", Compensate: true}, wiggle.Step{Name: "ship", Retry: quickly})
	var lock sync.Mutex
	undone := map[any][]any{}
	undo := func(step string) wiggle.Compensator {
		return func(c wiggle.Compensation) error {
			lock.Lock()
			defer lock.Unlock()
			key := c.Input["id"]
			undone[key] = append(undone[key], []any{step, c.Input[step], c.Result[step]})
			if key == "stuck" {
				return wiggle.Permanent("it cannot be undone")
			}
			return nil
		}
	}
	defer serve(client, func(w *wiggle.Worker) {
		w.Handle("go-saga", "reserve", put("reserve", "r-1")).HandleCompensation("go-saga", "reserve", undo("reserve")).
			HandleEffect("go-saga", "note", func(wiggle.Context) error { return nil }).
			Handle("go-saga", "charge", put("charge", "c-1")).HandleCompensation("go-saga", "charge", undo("charge")).
			Handle("go-saga", "ship", func(c wiggle.Context) (wiggle.Context, error) {
				if c["id"] == "good" {
					return c, nil
				}
				return nil, wiggle.Permanent("no van")
			})
	}).Stop()
	made := func(id string) wiggle.Context { return wiggle.Context{"id": id, "reserve": "r-1", "charge": "c-1"} }
	completed(client, start(client, flow, wiggle.Context{"id": "good"}), made("good"))
	ended(client, start(client, flow, wiggle.Context{"id": "bad"}), "COMPENSATED", made("bad"), "", "ship: no van")
	ended(client, start(client, flow, wiggle.Context{"id": "stuck"}), "COMPENSATION_FAILED", made("stuck"), "", "it cannot be undone")
	lock.Lock()
	defer lock.Unlock()
	equal(undone["bad"], []any{[]any{"charge", nil, "c-1"}, []any{"reserve", nil, "r-1"}}, "what was undone, and from what")
	equal(undone["good"], nil, "what was undone of an instance that completed")
	return "AwaitCompletion takes COMPENSATED for no end: Instance was asked"
}
