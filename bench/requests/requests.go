// Package requests counts the requests that a control plane answers.
//
// In go the control plane's own metrics; out come its requests by verb, resource and
// answer, those between two moments, and those of them that write.
package requests

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// Counts are how many requests were answered, by "VERB resource[/subresource] code".
type Counts map[string]float64

// Metrics reads what a control plane counts.
func Metrics(ctx context.Context, hub rest.Interface) (map[string]*dto.MetricFamily, error) {
	text, err := hub.Get().AbsPath("/metrics").DoRaw(ctx)
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

// Read reads the requests that a control plane has answered since it started.
func Read(ctx context.Context, hub rest.Interface) (Counts, error) {
	families, err := Metrics(ctx, hub)
	if err != nil {
		return nil, err
	}
	family, ok := families["apiserver_request_total"]
	if !ok {
		return nil, fmt.Errorf("the control plane does not count its requests")
	}
	out := Counts{}
	for _, metric := range family.GetMetric() {
		out[keyOf(metric)] += metric.GetCounter().GetValue()
	}
	return out, nil
}

func keyOf(metric *dto.Metric) string {
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

// Since returns what was added after before.
func (c Counts) Since(before Counts) Counts {
	out := Counts{}
	for key, value := range c {
		if added := value - before[key]; added > 0 {
			out[key] = added
		}
	}
	return out
}

// Conflicts returns the share of writes that were answered 409, and their number.
func (c Counts) Conflicts() (share, number float64) {
	writes := 0.0
	for key, value := range c {
		if reads(key) {
			continue
		}
		writes += value
		if strings.HasSuffix(key, " 409") {
			number += value
		}
	}
	if writes == 0 {
		return 0, 0
	}
	return number / writes, number
}

// Write is a kind of write, and how many there were.
type Write struct {
	What   string // "PATCH works/status"
	Number float64
}

// Writes returns the writes that were done, the most frequent first. Some may have changed nothing.
func (c Counts) Writes() []Write {
	sums := map[string]float64{}
	for key, value := range c {
		at := strings.LastIndexByte(key, ' ')
		if code := key[at+1:]; !reads(key) && strings.HasPrefix(code, "2") {
			sums[key[:at]] += value
		}
	}
	var out []Write
	for _, what := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, Write{what, sums[what]})
	}
	slices.SortStableFunc(out, func(a, b Write) int { return int(b.Number - a.Number) })
	return out
}

func reads(key string) bool {
	verb, _, _ := strings.Cut(key, " ")
	return slices.Contains([]string{"GET", "LIST", "WATCH", "WATCHLIST", "CONNECT"}, verb)
}
