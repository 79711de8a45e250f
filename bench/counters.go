package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-io/flotilla/bench/requests"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
)

// counters is what the control plane has done since it started.
type counters struct {
	// Revision is etcd's: every write that changed something adds one.
	Revision int64           `json:"revision"`
	Requests requests.Counts `json:"requests"`
	// Events is how many Event objects there are.
	Events int `json:"events"`
	// CPU is by process, in seconds.
	CPU map[string]float64 `json:"cpuSeconds"`
	// Peak is the largest resident size by process, in MiB.
	Peak map[string]float64 `json:"peakMiB"`
}

// count reads all counters.
func (b *bench) count(ctx context.Context) (counters, error) {
	out := counters{CPU: map[string]float64{}, Peak: map[string]float64{}}
	var err error
	if out.Revision, err = b.revision(ctx); err != nil {
		return out, err
	}
	if out.Requests, err = b.requests(ctx); err != nil {
		return out, err
	}
	events, err := b.kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return out, fmt.Errorf("count Events: %w", err)
	}
	out.Events = len(events.Items)
	for name, pid := range b.pids() {
		if out.CPU[name], err = usage.CPUSeconds(pid); err != nil {
			return out, err
		}
		if out.Peak[name], err = usage.PeakMiB(pid); err != nil {
			return out, err
		}
	}
	return out, nil
}

// since is what was added after before; peaks are as they are now.
func (c counters) since(before counters) counters {
	out := counters{
		Revision: c.Revision - before.Revision,
		Events:   c.Events - before.Events,
		Requests: c.Requests.Since(before.Requests),
		CPU:      map[string]float64{},
		Peak:     c.Peak,
	}
	for key, value := range c.CPU {
		out.CPU[key] = results.Round(value - before.CPU[key])
	}
	return out
}

// revision is etcd's revision: a list that asks for the latest is answered
// with it.
func (b *bench) revision(ctx context.Context) (int64, error) {
	list, err := b.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return strconv.ParseInt(list.ResourceVersion, 10, 64)
}

// requests reads which requests the control plane has answered.
func (b *bench) requests(ctx context.Context) (requests.Counts, error) {
	return requests.Read(ctx, b.kube.Discovery().RESTClient())
}

// quiet waits until nothing was written for the given time, and returns the
// revision then.
func (b *bench) quiet(ctx context.Context, still time.Duration) (int64, error) {
	last, at := int64(-1), time.Now()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err := b.revision(ctx)
		if err != nil {
			return false, err
		}
		if now != last {
			last, at = now, time.Now()
		}
		return time.Since(at) >= still, nil
	})
	return last, err
}
