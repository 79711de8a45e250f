package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Part is the status that one cluster reports.
type Part struct {
	Cluster string
	// Status is nil where the cluster reports none.
	Status map[string]any
}

// Reports are the statuses that all clusters report of one template.
type Reports struct {
	Template kinds.Object
	// Parts are sorted by cluster, so that no result depends on which cluster
	// reported first.
	Parts []Part
}

// Step changes the status of a template, given what clusters report. The status
// is a copy.
type Step func(status map[string]any, r Reports)

// Aggregate returns a rule that takes the steps one after the other, from the
// present status of the template. A status that is no object counts as none.
func Aggregate(steps ...Step) func(kinds.Object, []workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
	return func(template kinds.Object, items []workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
		parts, err := Parts(items)
		if err != nil {
			return nil, err
		}
		status, reports := StatusOf(template), Reports{template, parts}
		for _, step := range steps {
			step(status, reports)
		}
		return status, nil
	}
}

// Parts decodes the statuses that clusters report, and sorts them by cluster.
func Parts(items []workv1alpha2.AggregatedStatusItem) ([]Part, error) {
	out := make([]Part, len(items))
	for i := range items {
		status, err := itemStatus(&items[i])
		if err != nil {
			return nil, err
		}
		out[i] = Part{items[i].ClusterName, status}
	}
	slices.SortStableFunc(out, func(a, b Part) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out, nil
}

func itemStatus(item *workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
	if item.Status == nil || len(item.Status.Raw) == 0 {
		return nil, nil
	}
	var out any
	if err := utiljson.Unmarshal(item.Status.Raw, &out); err != nil {
		return nil, fmt.Errorf("status of cluster %s: %w", item.ClusterName, err)
	}
	status, _ := out.(map[string]any)
	return status, nil
}

// Fields of a reported status that show which spec it is about: the generation of
// the member's object, the generation of the template that it was made from, and
// the latest generation that the object's controller has observed.
const (
	FieldGeneration         = "generation"
	FieldTemplateGeneration = "resourceTemplateGeneration"
	FieldObservedGeneration = "observedGeneration"
)

// Sum adds up counts. Every count is written, zeros too, so that a merge patch
// made of the result clears what has gone. A negative count is taken for zero,
// and sums end at the largest int32, as API servers refuse more.
func Sum(counts ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, name := range counts {
			status[name] = SumOf(r.Parts, name)
		}
	}
}

// SumOf adds up a count of the parts, as Sum does.
func SumOf(parts []Part, path ...string) int64 {
	var sum int64
	for _, p := range parts {
		sum += min(max(Number(p.Status, path...), 0), math.MaxInt32)
	}
	return min(sum, math.MaxInt32)
}

// AtMost lowers counts to the count limit, as the API server asks for: for
// example, no more replicas may be ready than there are.
func AtMost(limit string, counts ...string) Step {
	return func(status map[string]any, _ Reports) {
		most := Number(status, limit)
		for _, name := range counts {
			if Number(status, name) > most {
				status[name] = most
			}
		}
	}
}

// Observe sets the observed generation to the template's once every cluster
// reports about the latest spec; until then the field stays as it is. A template
// that is in no cluster is observed at once, as no controller is left to wait
// for.
func Observe(status map[string]any, r Reports) {
	if r.Template.GetGeneration() > 0 && Observed(r) {
		status[FieldObservedGeneration] = r.Template.GetGeneration()
	}
}

// Observed reports whether every cluster reports about the template's latest
// generation. The statuses have to be reported by ReflectTracked.
func Observed(r Reports) bool {
	for _, p := range r.Parts {
		if p.Status == nil || Number(p.Status, FieldObservedGeneration) < Number(p.Status, FieldGeneration) ||
			Number(p.Status, FieldTemplateGeneration) < r.Template.GetGeneration() {
			return false
		}
	}
	return true
}

// Phase is Worst for the field phase, but leaves it as it is where no word is
// known.
func Phase(missing string, words ...string) Step {
	return func(status map[string]any, r Reports) {
		if word := worstOf(r, "phase", missing, words); word != "" {
			status["phase"] = word
		}
	}
}

// Collect sets the list at a path to the distinct values of all clusters, sorted
// by their JSON. It writes nothing where no cluster reports a value and the
// template has no list.
func Collect(path ...string) Step {
	return func(status map[string]any, r Reports) {
		var all []any
		for _, p := range r.Parts {
			all = append(all, List(p.Status, path...)...)
		}
		if len(all) > 0 || Value(status, path...) != nil {
			Put(status, Distinct(all), path...)
		}
	}
}

// Put sets v at the path, and replaces what is on the way and is no object by
// one.
func Put(m map[string]any, v any, path ...string) {
	for _, key := range path[:len(path)-1] {
		child, ok := m[key].(map[string]any)
		if !ok {
			child = map[string]any{}
			m[key] = child
		}
		m = child
	}
	m[path[len(path)-1]] = v
}

// Distinct returns the values sorted by their JSON, each once; never nil.
func Distinct(values []any) []any {
	type entry struct {
		value any
		text  string
	}
	entries := make([]entry, 0, len(values))
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			continue // cannot happen: it was decoded from JSON
		}
		entries = append(entries, entry{v, string(data)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.text, b.text) })
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.text == b.text })
	out := make([]any, len(entries))
	for i := range entries {
		out[i] = entries[i].value
	}
	return out
}
