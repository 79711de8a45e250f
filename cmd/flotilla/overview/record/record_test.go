package record_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/record"
)

var now = time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)

func at(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }

func event(kind, name, reason, message string, change func(*corev1.Event)) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Type: corev1.EventTypeNormal, Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Source: corev1.EventSource{Component: "flotilla"},
	}
	change(e)
	return e
}

// Events have their time in one of several fields, which depends on the client that wrote them.
func TestOrderAndText(t *testing.T) {
	entries := []record.Entry{
		record.Of("east", event("Pod", "web-1", "BackOff", "pull\n\x1b[31mfailed", func(e *corev1.Event) {
			e.FirstTimestamp, e.LastTimestamp, e.Count, e.Type = at(time.Hour), at(time.Minute), 12, corev1.EventTypeWarning
		})),
		record.Of("Karmada", event("Deployment", "web", "ApplyPolicySucceed", "Carried by policy shop/web.", func(e *corev1.Event) {
			e.EventTime = metav1.NewMicroTime(at(time.Hour).Time)
		})),
		record.Of("west", event("Pod", "web-2", "Pulling", "pull", func(e *corev1.Event) {
			e.EventTime = metav1.NewMicroTime(at(3 * time.Hour).Time)
			e.Series = &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(at(2 * time.Minute).Time)}
		})),
		record.Of("Karmada", event("Kustomization", "app", "Made", "by nobody's clock", func(e *corev1.Event) {
			e.CreationTimestamp = at(2 * time.Hour)
		})),
	}
	record.Sort(entries)
	cases := map[string]struct {
		opts record.TextOptions
		want string
	}{
		"of one namespace": {record.TextOptions{Now: now}, `LAST SEEN           CLUSTER  TYPE     REASON              OBJECT             SOURCE    MESSAGE
120m                Karmada  Normal   Made                Kustomization/app  flotilla  by nobody's clock
60m                 Karmada  Normal   ApplyPolicySucceed  Deployment/web     flotilla  Carried by policy shop/web.
2m (x4 over 3h)     west     Normal   Pulling             Pod/web-2          flotilla  pull
60s (x12 over 60m)  east     Warning  BackOff             Pod/web-1          flotilla  pull [31mfailed
`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := record.Text(&out, entries, tc.opts); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	e := record.Of("east", event("Pod", "web-1", "BackOff", "no", func(e *corev1.Event) { e.Type = corev1.EventTypeWarning }))
	cases := map[string]struct {
		filter record.Filter
		want   bool
	}{
		"none means all":          {record.Filter{}, true},
		"its type, in any case":   {record.Filter{Types: []string{"warning"}}, true},
		"another type":            {record.Filter{Types: []string{"Normal"}}, false},
		"its object":              {record.Filter{Objects: map[string]bool{"Pod/web-1": true}}, true},
		"one of the same name":    {record.Filter{Objects: map[string]bool{"Node/web-1": true}}, false},
		"its object, but no type": {record.Filter{Types: []string{"Normal"}, Objects: map[string]bool{"Pod/web-1": true}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.filter.Has(e); got != tc.want {
				t.Errorf("Has = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestForeignTextObeysNothing: a member's server may give any text as any field.
func TestForeignTextObeysNothing(t *testing.T) {
	const text = "\x1b[2J\x1b[Hweb\n\x1b[8m"
	entry := record.Of("west", event(text, text, text, text, func(e *corev1.Event) {
		e.Namespace, e.Type, e.Source.Component = text, text, text
	}))
	var out bytes.Buffer
	if err := record.Text(&out, []record.Entry{entry}, record.TextOptions{Now: now, Namespaces: true}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}
