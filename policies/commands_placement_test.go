package policies_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// binding NAME decides about a binding that somebody wrote, or writes in the
// body, in namespace shop; its template does not matter.
func (w *world) binding(args []string, body string) (string, error) {
	k := "Binding shop/" + args[0]
	b, ok := w.bindings[k].(*workv1alpha2.ResourceBinding)
	if !ok {
		b = &workv1alpha2.ResourceBinding{}
		b.Namespace, b.Name = "shop", args[0]
		b.Labels = map[string]string{workv1alpha2.BindingManagedByLabel: "somebody"}
		w.bindings[k] = b
	}
	if body != "" {
		was := b.Spec.Clusters
		b.Spec = workv1alpha2.ResourceBindingSpec{}
		if err := yaml.UnmarshalStrict([]byte(body), &b.Spec); err != nil {
			return "", err
		}
		b.Spec.Clusters = was
	}
	w.now = w.now.Add(time.Minute)
	d, changed := placement.Decide(b, placement.Situation{
		Clusters: placement.NewSnapshot(values(w.clusters)), Peers: placement.PeersOf(b, values(w.bindings)), Now: w.now,
	}, placement.Options{})
	if !changed {
		return "nothing to write", nil
	}
	d.Put(b)
	out := []string{d.Why + ": " + d.Record.Reason}
	if d.Err != nil {
		out[0] += ": " + d.Err.Error()
	}
	for _, t := range b.Spec.Clusters {
		line := t.Name
		if t.Replicas > 0 {
			line += fmt.Sprintf(" %d", t.Replicas)
		}
		for _, c := range t.Components {
			line += fmt.Sprintf(" %s=%d", c.Name, c.Replicas)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), nil
}

// explanation prints a trace, term by term.
func explanation(t placement.Trace) string {
	var out []string
	for _, term := range t.Terms {
		if term.Name != "" {
			out = append(out, "affinity "+term.Name+":")
		}
		for _, v := range term.Verdicts {
			out = append(out, v.Cluster+": "+verdict(v))
		}
		if term.Spread != "" {
			out = append(out, "spread: "+term.Spread)
		}
		if term.Division != "" {
			out = append(out, "division: "+term.Division)
		}
		if term.Err != nil {
			out = append(out, term.Err.Error())
		}
	}
	return strings.Join(out, "\n")
}

func verdict(v placement.Verdict) string {
	if v.Refused != "" {
		return v.Refused + ": " + v.Reason
	}
	parts := []string{"fits"}
	for _, name := range slices.Sorted(maps.Keys(v.Scores)) {
		if v.Scores[name] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, v.Scores[name]))
		}
	}
	if v.Tier > 0 {
		parts = append(parts, fmt.Sprintf("overflow %d", v.Tier))
	}
	if v.Assigned > 0 {
		parts = append(parts, fmt.Sprintf("runs %d", v.Assigned))
	}
	if v.Available >= 0 {
		parts = append(parts, fmt.Sprintf("room for %d in all", v.Available))
	}
	if !v.Selected {
		parts = append(parts, "left out")
	}
	return strings.Join(parts, ", ")
}
