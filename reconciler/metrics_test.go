package reconciler_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-io/flotilla/agent/hubconn"
	"github.com/flotilla-io/flotilla/cmd/flotillad/estimator"
	"github.com/flotilla-io/flotilla/controlplane/proxy"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md anew")

// metricsPage says what each figure means. Its table is held to the code; its column
// "loop" is written by hand, and kept.
const metricsPage = "../docs/metrics.md"

// TestTheMetricsPage: docs/metrics.md lists what all programs register, with types, labels
// and meanings as they are.
func TestTheMetricsPage(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	artifacts, err := artifact.NewStore(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := &registered{collectors: map[string]prometheus.Collector{}}
	hubs.Env(t).Loops(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{Metrics: all, Artifacts: artifacts, Reporting: reconciler.ReportKarmada})
	})
	proxy.New(proxy.Options{Metrics: all})
	estimator.New(nil, estimator.Options{Metrics: all})
	(&hubconn.Connection{}).Count(all) // the agent's own; its loops are those of above

	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rows, tail := tableOf(t, string(page))
	loops := map[string]string{}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		loops[strings.Trim(cells[0], "`")] = cells[3]
	}
	want := all.table(loops)
	if *update {
		if err := os.WriteFile(metricsPage, []byte(head+strings.Join(want, "\n")+"\n"+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		rows = want
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("docs/metrics.md (-the code +the page); -update writes it:\n%s", diff)
	}
	for _, row := range want {
		if strings.Contains(row, "| ? |") {
			t.Errorf("docs/metrics.md does not say which loop this is of: %s", row)
		}
	}
}

const tableHead = "| name | type | labels | loop | meaning |\n| --- | --- | --- | --- | --- |\n"

// tableOf takes a page apart: what is before the rows of its table, these, and the rest.
func tableOf(t *testing.T, page string) (head string, rows []string, tail string) {
	t.Helper()
	head, rest, found := strings.Cut(page, tableHead)
	if !found {
		t.Fatalf("there is no table with the head %q", tableHead)
	}
	for rest != "" {
		line, more, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows, rest = append(rows, line), more
	}
	return head + tableHead, rows, rest
}

// registered takes down what is registered, with a registry's rules.
type registered struct {
	mu         sync.Mutex
	registry   *prometheus.Registry
	collectors map[string]prometheus.Collector // by the text of what they describe
}

func (r *registered) Register(c prometheus.Collector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.registry == nil {
		r.registry = prometheus.NewRegistry()
	}
	if err := r.registry.Register(c); err != nil {
		return err
	}
	for _, desc := range descriptions(c) {
		r.collectors[desc] = c
	}
	return nil
}

func (r *registered) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func (r *registered) Unregister(c prometheus.Collector) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.registry != nil && r.registry.Unregister(c)
}

// described is the text of a description: it has no other way to tell.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "", )?constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// table returns the rows of the page, given the loops that figures are of.
func (r *registered) table(loops map[string]string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for text, c := range r.collectors {
		parts := described.FindStringSubmatch(text)
		if parts == nil {
			out = append(out, "not understood: "+text)
			continue
		}
		name, _ := strconv.Unquote(parts[1])
		help, _ := strconv.Unquote(parts[2])
		var labels []string
		for label := range strings.SplitSeq(parts[3], ",") {
			if label != "" {
				labels = append(labels, "`"+label+"`")
			}
		}
		loop := loops[name]
		if loop == "" {
			loop = "?"
		}
		out = append(out, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", name, typeOf(c), strings.Join(labels, ", "), loop, help))
	}
	slices.Sort(out)
	return out
}

func descriptions(c prometheus.Collector) []string {
	to := make(chan *prometheus.Desc, 100)
	c.Describe(to)
	close(to)
	var out []string
	for desc := range to {
		out = append(out, desc.String())
	}
	return out
}

// typeOf names the type of a figure. Those of our own that ask when they are read are gauges.
func typeOf(c prometheus.Collector) string {
	switch c := c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec:
		return "histogram"
	case prometheus.Metric:
		var m dto.Metric
		if err := c.Write(&m); err == nil && m.Histogram != nil {
			return "histogram"
		} else if err == nil && m.Counter != nil {
			return "counter"
		}
	}
	return "gauge"
}
