package record

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Entry is one Event.
type Entry struct {
	// Server is the name of its cluster, or the name for the control plane.
	Server    string `json:"cluster"`
	Namespace string `json:"namespace"`
	// Last and First are the times of its occurrences; Count is their number.
	Last    metav1.Time `json:"last"`
	First   metav1.Time `json:"first"`
	Count   int32       `json:"count"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Message string      `json:"message"`
	// Source is the component that reported it.
	Source string `json:"source,omitempty"`
}

// Of returns the entry of an Event.
func Of(server string, e *corev1.Event) Entry {
	out := Entry{
		Server: server, Namespace: e.Namespace, Last: e.LastTimestamp, First: e.FirstTimestamp, Count: e.Count,
		Type: e.Type, Reason: e.Reason, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Message: e.Message,
		Source: e.Source.Component,
	}
	if out.Source == "" {
		out.Source = e.ReportingController
	}
	if e.Series != nil {
		out.Count, out.Last = e.Series.Count, metav1.NewTime(e.Series.LastObservedTime.Time)
	}
	for _, at := range []metav1.Time{metav1.NewTime(e.EventTime.Time), e.CreationTimestamp} {
		if out.First.IsZero() {
			out.First = at
		}
	}
	if out.Last.IsZero() {
		out.Last = out.First
	}
	if written := written(e); out.Last.Time.After(written.Add(time.Minute)) { // the reporter's clock differs
		out.Last = written
	}
	if out.First.After(out.Last.Time) {
		out.First = out.Last
	}
	out.Count = max(out.Count, 1)
	return out
}

// written returns when the server last stored a version of an Event, by its own clock.
func written(e *corev1.Event) metav1.Time {
	last := e.CreationTimestamp
	for _, f := range e.ManagedFields {
		if f.Time != nil && f.Time.After(last.Time) {
			last = *f.Time
		}
	}
	if last.IsZero() { // it was never stored
		return metav1.NewTime(time.Unix(1<<40, 0))
	}
	return last
}

// Sort sorts entries by time, the oldest first, and entries of the same time by their objects.
func Sort(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.Last.Time.Compare(b.Last.Time), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
}

// Filter selects entries. The zero value selects all.
type Filter struct {
	// Types are the types of Events, in any letter case; none means all.
	Types []string
	// Objects are "Kind/name"; none means all.
	Objects map[string]bool
}

// Has reports whether the filter selects an entry.
func (f Filter) Has(e Entry) bool {
	if len(f.Types) > 0 && !slices.ContainsFunc(f.Types, func(t string) bool { return strings.EqualFold(t, e.Type) }) {
		return false
	}
	return len(f.Objects) == 0 || f.Objects[e.Kind+"/"+e.Name]
}

// TextOptions change what Text shows.
type TextOptions struct {
	Now time.Time
	// Namespaces adds the column for namespaces.
	Namespaces bool
	// NoHeader leaves the header out, for rows that follow others.
	NoHeader bool
}

// Text writes entries as a table.
func Text(w io.Writer, entries []Entry, opts TextOptions) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(seen, server, namespace string, others ...string) {
		cells := []string{seen, server}
		if opts.Namespaces {
			cells = append(cells, excerpt.Line(namespace))
		}
		for _, cell := range others {
			cells = append(cells, excerpt.Line(cell)) // text from a member may contain anything
		}
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) // Flush errs
	}
	if !opts.NoHeader {
		row("LAST SEEN", "CLUSTER", "NAMESPACE", "TYPE", "REASON", "OBJECT", "SOURCE", "MESSAGE")
	}
	for _, e := range entries {
		row(seen(e, opts.Now), e.Server, e.Namespace, e.Type, e.Reason, e.Kind+"/"+e.Name, e.Source, e.Message)
	}
	return table.Flush()
}

// seen returns "3m", or "3m (x5 over 1h)".
func seen(e Entry, now time.Time) string {
	age := func(at metav1.Time) string { return duration.HumanDuration(max(now.Sub(at.Time), 0)) }
	if e.Count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", age(e.Last), e.Count, age(e.First))
	}
	return age(e.Last)
}
