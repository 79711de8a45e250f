package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
)

// counters is what the control plane has done since it started.
type counters struct {
	// Revision is etcd's: every write that changed something adds one.
	Revision int64 `json:"revision"`
	// Requests are counted by "verb resource[/subresource] code".
	Requests map[string]float64 `json:"requests"`
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
		Requests: map[string]float64{},
		CPU:      map[string]float64{},
		Peak:     c.Peak,
	}
	for key, value := range c.Requests {
		if added := value - before.Requests[key]; added > 0 {
			out.Requests[key] = added
		}
	}
	for key, value := range c.CPU {
		out.CPU[key] = results.Round(value - before.CPU[key])
	}
	return out
}

// conflicts returns the share of writes that were answered 409, and their number.
func (c counters) conflicts() (share, number float64) {
	writes := 0.0
	for key, value := range c.Requests {
		verb, rest, _ := strings.Cut(key, " ")
		if verb == "GET" || verb == "LIST" || verb == "WATCH" || verb == "WATCHLIST" {
			continue
		}
		writes += value
		if strings.HasSuffix(rest, " 409") {
			number += value
		}
	}
	if writes == 0 {
		return 0, 0
	}
	return number / writes, number
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

// metrics reads what the control plane counts.
func (b *bench) metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	text, err := b.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the control plane: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the control plane: %w", err)
	}
	return families, nil
}

// requests reads the API server's own count.
func (b *bench) requests(ctx context.Context) (map[string]float64, error) {
	families, err := b.metrics(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	family, ok := families["apiserver_request_total"]
	if !ok {
		return nil, fmt.Errorf("the control plane does not count its requests")
	}
	for _, metric := range family.GetMetric() {
		out[requestKey(metric)] += metric.GetCounter().GetValue()
	}
	return out, nil
}

func requestKey(metric *dto.Metric) string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	resource := labels["resource"]
	if labels["subresource"] != "" {
		resource += "/" + labels["subresource"]
	}
	return labels["verb"] + " " + resource + " " + labels["code"]
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
