package dependency

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// FaultAnnotation on the binding of a template records why it is not known what the
// template refers to, or which references make no sense. Dependencies from before
// are still propagated. At most propagation.MaxFault bytes.
const FaultAnnotation = "propagation.flotilla.io/dependency-fault"

// MaxNoted is how many bytes the list of what a template refers to may have: the
// binding must carry it.
const MaxNoted = 128 << 10

// Need is one thing that a template refers to: an object by its name, or all of
// a kind and a namespace that have the labels.
type Need struct {
	schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	// Name of the object; empty where labels find it.
	Name string
	// Labels find the objects where there is no name.
	Labels labels.Selector
}

// Means reports whether r is what is needed, in whatever version of its API.
func (n *Need) Means(r selector.Resource) bool {
	if n.Kind != r.Kind || n.Namespace != r.Namespace || schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group != n.Group {
		return false
	}
	if n.Name != "" {
		return n.Name == r.Name
	}
	return n.Labels.Matches(labels.Set(r.Labels))
}

// Check returns the dependencies that make sense, sorted and each of them once,
// and what is wrong with the others: any of those before may be meant by them, so
// that these stay. Kinds that are never propagated, and the template itself, are
// left out without a word.
func Check(all, before []kinds.Dependency, template selector.Resource, skip propagation.SkipRules) ([]kinds.Dependency, error) {
	var faults []error
	wrong, out := 0, make([]kinds.Dependency, 0, len(all))
	for i, d := range all {
		need, err := needOf(d)
		if err != nil {
			switch wrong++; {
			case wrong <= maxFaults:
				faults = append(faults, fmt.Errorf("dependency %d: %w", i+1, err))
			case wrong == maxFaults+1:
				faults = append(faults, errors.New("and others"))
			}
			continue
		}
		if need.Name != "" {
			d.LabelSelector = nil
		}
		if propagation.PropagatesKind(need.GroupVersionKind, skip) && (need.Name == "" || !need.Means(template)) {
			out = append(out, d)
		}
	}
	if wrong == 0 {
		before = nil
	}
	return Union(out, before), errors.Join(faults...)
}

// maxFaults is how many dependencies without sense are named.
const maxFaults = 3

// needOf reads a dependency.
func needOf(d kinds.Dependency) (Need, error) {
	gv, err := schema.ParseGroupVersion(d.APIVersion)
	need := Need{GroupVersionKind: gv.WithKind(d.Kind), Namespace: d.Namespace, Name: d.Name}
	switch {
	case err != nil:
		return need, err
	case gv.Version == "" || d.Kind == "":
		return need, errors.New("has no apiVersion or no kind")
	case d.Name != "":
		return need, nil
	case d.LabelSelector == nil:
		return need, errors.New("has neither a name nor a label selector")
	}
	if need.Labels, err = metav1.LabelSelectorAsSelector(d.LabelSelector); err != nil {
		return need, fmt.Errorf("label selector: %w", err)
	}
	return need, nil
}

func compare(a, b kinds.Dependency) int {
	return cmp.Or(
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(metav1.FormatLabelSelector(a.LabelSelector), metav1.FormatLabelSelector(b.LabelSelector)),
	)
}

// Needs returns what dependencies that Check let pass stand for.
func Needs(all []kinds.Dependency) []Need {
	out := make([]Need, 0, len(all))
	for _, d := range all {
		if need, err := needOf(d); err == nil {
			out = append(out, need)
		}
	}
	return out
}

// Union returns the dependencies of both lists, sorted and each of them once.
func Union(a, b []kinds.Dependency) []kinds.Dependency {
	out := slices.Concat(a, b)
	slices.SortFunc(out, compare)
	return slices.CompactFunc(out, func(a, b kinds.Dependency) bool { return compare(a, b) == 0 })
}

// Note returns the text that a binding carries of its template's dependencies.
// It returns an error where that would be more than the binding can carry.
func Note(all []kinds.Dependency) (string, error) {
	data, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode dependencies: %w", err)
	}
	if len(data) > MaxNoted {
		return "", fmt.Errorf("refers to %d objects, which are more than its binding can list", len(all))
	}
	return string(data), nil
}
