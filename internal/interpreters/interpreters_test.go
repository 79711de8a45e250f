package interpreters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

func kindOf(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
}

func object(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3)}}}
	obj.SetGroupVersionKind(gvk)
	obj.SetName("a")
	return obj
}

// customization says how many replicas objects of a kind have.
func customization(name, kind, replicas string) *configv1alpha1.ResourceInterpreterCustomization {
	return &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target: configv1alpha1.CustomizationTarget{APIVersion: "example.com/v1", Kind: kind},
			Customizations: configv1alpha1.CustomizationRules{
				ReplicaResource: &configv1alpha1.CustomizationScript{LuaScript: "function GetReplicas(obj) return " + replicas + " end"},
			},
		},
	}
}

func hooks(name string, kinds ...string) *configv1alpha1.ResourceInterpreterWebhookConfiguration {
	return &configv1alpha1.ResourceInterpreterWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
			Name:         "a.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1")},
			Rules: []configv1alpha1.RuleWithOperations{{
				Operations: []configv1alpha1.InterpreterOperation{"*"},
				Rule:       configv1alpha1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Kinds: kinds},
			}},
			InterpreterContextVersions: []string{"v1alpha1"},
		}},
	}
}

// Each edit is reported with the kinds that it affects, old and new, and no others
// are compiled again.
func TestChanges(t *testing.T) {
	all := []string{"A", "B", "C", "D"}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(customization("a", "A", "1"), customization("b", "B", "2")).Build()
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	i := New(Options{Clock: clock})
	var reported []string
	i.OnChange(func(_ context.Context, affects func(schema.GroupVersionKind) bool) {
		some := slices.DeleteFunc(slices.Clone(all), func(kind string) bool { return !affects(kindOf(kind)) })
		reported = append(reported, strings.Join(some, " "))
	})
	// replicas are what is known: "-" for nothing, "?" for an answer on its way.
	replicas := func() string {
		var out []string
		for _, kind := range all {
			n, _, known, err := i.Interpreter().Replicas(object(kindOf(kind)))
			_, awaits := kinds.Awaits(err)
			switch {
			case awaits:
				out = append(out, "?")
			case err != nil:
				out = append(out, "!")
			case !known:
				out = append(out, "-")
			default:
				out = append(out, fmt.Sprint(n))
			}
		}
		return strings.Join(out, "")
	}
	if got := replicas(); got != "????" {
		t.Errorf("before anything was read: %s", got)
	}
	later := func() error {
		clock.SetTime(clock.Now().Add(linger))
		return nil
	}
	steps := []struct {
		what     string
		edit     func() error
		reported []string
		replies  string
	}{
		{"the first time", func() error { return nil }, nil, "12--"},
		{"nothing", func() error { return nil }, nil, "12--"},
		{"another label", func() error {
			c := customization("a", "A", "1")
			c.Labels = map[string]string{"a": "b"}
			return replace(t, hub, c)
		}, nil, "12--"},
		{"another script", func() error { return replace(t, hub, customization("a", "A", "5")) }, []string{"A"}, "52--"},
		{"another kind", func() error { return replace(t, hub, customization("a", "C", "5")) }, []string{"A C"}, "-25-"},
		{"one that comes first", func() error { return hub.Create(t.Context(), customization("0", "B", "9")) }, []string{"B"}, "-95-"},
		{"one that does not compile", func() error { return replace(t, hub, customization("0", "B", "(")) }, []string{"B"}, "-!5-"},
		{"one that goes", func() error { return hub.Delete(t.Context(), customization("0", "", "")) }, nil, "-!5-"},
		{"a while after it", later, []string{"B"}, "-25-"},
		{"one that goes, to be made anew", func() error { return hub.Delete(t.Context(), customization("b", "", "")) }, nil, "-25-"},
		{"it is made anew", func() error { return hub.Create(t.Context(), customization("b", "B", "2")) }, nil, "-25-"},
		{"a while after that", later, nil, "-25-"},
		{"one that goes, to be named otherwise", func() error { return hub.Delete(t.Context(), customization("b", "", "")) }, nil, "-25-"},
		{"the other name", func() error { return hub.Create(t.Context(), customization("c", "B", "2")) }, []string{"B"}, "-25-"},
		{"a while after the other name", later, []string{"B"}, "-25-"},
		{"a webhook", func() error { return hub.Create(t.Context(), hooks("h", "D", "C")) }, []string{"C D"}, "-25?"},
		{"about other kinds", func() error {
			h := hooks("h", "A", "D")
			h.Generation = 2
			return replace(t, hub, h)
		}, []string{"A C D"}, "?25?"},
		{"no webhook", func() error { return hub.Delete(t.Context(), hooks("h")) }, nil, "?25?"},
		{"a while after the webhook", later, []string{"A D"}, "-25-"},
	}
	for n, step := range steps {
		if err := step.edit(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		reported = nil
		before := maps.Clone(i.scripts.sources)
		again, err := i.read(t.Context(), hub, n == 0)
		if err != nil {
			t.Fatal(err)
		}
		if deleted := len(i.deletedScripts.since) + len(i.deletedHooks.since); (again == linger) != (deleted > 0) || deleted == 0 && again != 0 {
			t.Errorf("%s: reads again after %s with %d deleted", step.what, again, deleted)
		}
		if diff := cmp.Diff(step.reported, reported); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", step.what, diff)
		}
		if got := replicas(); got != step.replies {
			t.Errorf("%s: replicas = %s, want %s", step.what, got, step.replies)
		}
		if n > 0 && len(step.reported) == 0 && !maps.EqualFunc(before, i.scripts.sources, func(a, b []source) bool { return slices.EqualFunc(a, b, source.equal) }) {
			t.Errorf("%s: other sources", step.what)
		}
	}
}

func replace(t *testing.T, hub client.Client, obj client.Object) error {
	t.Helper()
	generation := obj.GetGeneration()
	current := obj.DeepCopyObject().(client.Object)
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(obj), current); err != nil {
		return err
	}
	obj.SetResourceVersion(current.GetResourceVersion())
	obj.SetUID(current.GetUID())
	obj.SetGeneration(generation)
	return hub.Update(t.Context(), obj)
}

// Layers answer in Karmada's order.
func TestOrder(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	c := customization("d", "Deployment", "7")
	c.Spec.Target.APIVersion = "apps/v1"
	h := hooks("h", "Deployment")
	h.Webhooks[0].Rules[0].APIGroups = []string{"apps"}
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	i := New(Options{Clock: clock})
	ask := func() string {
		n, _, _, err := i.Interpreter().Replicas(object(deployment))
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(n)
	}
	var got []string
	for _, objs := range [][]client.Object{{c, h}, {h}, {}} {
		hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objs...).Build()
		for range 2 { // what is deleted goes a while later
			if _, err := i.read(t.Context(), hub, false); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(linger))
		}
		got = append(got, ask())
	}
	want := []string{"7", "replicas of Deployment a: waits for the answer of webhook h/a.example.com", "3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}

func TestClosedGate(t *testing.T) {
	know := New(Options{}).Interpreter()
	pod := object(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	errs := map[string]error{}
	_, _, _, errs["replicas"] = know.Replicas(pod)
	_, _, errs["components"] = know.Components(pod)
	_, _, errs["revise"] = know.Revise(pod, 1)
	_, errs["retain"] = know.Retain(pod, pod)
	_, errs["status"] = know.ReflectStatus(pod)
	_, errs["health"] = know.Health(pod)
	_, _, errs["aggregate"] = know.AggregateStatus(pod, nil)
	_, _, errs["dependencies"] = know.Dependencies(pod)
	for operation, err := range errs {
		if after, awaits := kinds.Awaits(err); !awaits || after != unready {
			t.Errorf("%s = %v, after %s", operation, err, after)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	wrap := func(err error) error {
		return fmt.Errorf("more: %w", &interpreter.Error{Operation: "health", Kind: "A", Name: "a", Err: err})
	}
	cases := map[string]struct {
		err    error
		after  time.Duration
		failed bool
	}{
		"a webhook":                {wrap(&webhook.Fault{Hook: "h", After: 4 * time.Second, Err: io.EOF}), 4 * time.Second, true},
		"a webhook, nearly due":    {wrap(&webhook.Fault{Hook: "h", After: 1, Err: io.EOF}), soonest, true},
		"a script":                 {wrap(errors.New("nil")), time.Minute, true},
		"an answer on its way":     {wrap(&kinds.Pending{Of: "h"}), time.Minute, false},
		"what is no rule's fault":  {io.EOF, time.Minute, false},
		"a rule and the loop both": {errors.Join(io.EOF, wrap(io.EOF)), time.Minute, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if after, failed := RetryAfter(tc.err), Failed(tc.err); after != tc.after || failed != tc.failed {
				t.Errorf("%s, failed = %v; want %s, %v", after, failed, tc.after, tc.failed)
			}
		})
	}
}

// A rule that uses up its budget is asked again later for each object that it did
// so on, until it is another one; what fails otherwise is asked again in a minute.
func TestRetriesAreSpread(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three hundred endless scripts to their ends")
	}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	endless, broken := customization("a", "A", "1"), customization("b", "B", "nil + 1")
	endless.Spec.Customizations.ReplicaResource.LuaScript = "function GetReplicas(obj) while true do end end"
	i := New(Options{Clock: clock})
	read := func() {
		t.Helper()
		hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(endless, broken).Build()
		if _, err := i.read(t.Context(), hub, true); err != nil {
			t.Fatal(err)
		}
	}
	retry := func(kind string) time.Duration {
		_, _, _, err := i.Interpreter().Replicas(object(kindOf(kind)))
		if !Failed(err) {
			t.Fatalf("error = %v", err)
		}
		return RetryAfter(err)
	}
	read()
	var got []time.Duration
	for n := range 200 {
		if after := retry("A"); n%50 == 49 {
			got = append(got, after, retry("B"))
		}
	}
	clock.SetTime(clock.Now().Add(150 * time.Second))
	got = append(got, retry("A"))
	clock.SetTime(clock.Now().Add(time.Hour))
	got = append(got, retry("A"))
	for range 100 {
		retry("A")
	}
	endless.Spec.Customizations.ReplicaResource.LuaScript += " -- edited"
	read()
	got = append(got, retry("A"))
	m := time.Minute
	want := []time.Duration{m, m, 100 * time.Second, m, 150 * time.Second, m, 200 * time.Second, m, m, m, m}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked again after (-want +got):\n%s", diff)
	}
}

// Answers are counted by layer, operation and kind; the number of kinds is
// bounded.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(customization("a", "A", "1"), customization("b", "B", "nil + 1")).Build()
	i := New(Options{Metrics: registry})
	if _, err := i.read(t.Context(), hub, true); err != nil {
		t.Fatal(err)
	}
	know := i.Interpreter()
	for range 3 {
		_, _, _, _ = know.Replicas(object(kindOf("A")))
		_, _, _, _ = know.Replicas(object(kindOf("B")))
		_, _, _, _ = know.Replicas(object(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}))
	}
	New(Options{Metrics: registry}).webhooks.Use(nil) // a second one counts in the same metrics
	called := i.opts.Webhooks.Called
	called(webhook.Call{Kind: kindOf("W"), Operation: "InterpretHealth", Err: http.ErrHandlerTimeout})
	for n := range 2 * maxKinds {
		called(webhook.Call{Kind: kindOf(fmt.Sprint("K", n)), Operation: "InterpretHealth"})
	}
	got, others := map[string]string{}, 0
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["kind"] == "other" || strings.HasPrefix(labels["kind"], "K") {
				others++
				continue
			}
			if labels["kind"] == "" {
				continue // of no kind
			}
			key := strings.Join([]string{family.GetName(), labels["layer"], labels["operation"], labels["kind"]}, " ")
			got[key] = fmt.Sprint(m.GetHistogram().GetSampleCount(), m.GetCounter().GetValue())
		}
	}
	want := map[string]string{
		"flotilla_interpreter_seconds customization replicas A.example.com":        "3 0",
		"flotilla_interpreter_seconds customization replicas B.example.com":        "3 0",
		"flotilla_interpreter_seconds native replicas Deployment.apps":             "3 0",
		"flotilla_interpreter_seconds webhook health W.example.com":                "1 0",
		"flotilla_interpreter_failures_total customization replicas B.example.com": "0 3",
		"flotilla_interpreter_failures_total webhook health W.example.com":         "0 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if others == 0 || others > maxKinds {
		t.Errorf("%d series of other kinds, want at most %d", others, maxKinds)
	}
}
