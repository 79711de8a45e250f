package selector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Resource is what a resource selector looks at.
type Resource struct {
	// APIVersion and Kind are compared as they are written.
	APIVersion, Kind string
	// Namespace is empty for cluster-scoped resources.
	Namespace, Name string
	// Labels of the resource.
	Labels map[string]string
}

// ResourceOf returns the facts about obj that selectors look at.
func ResourceOf(obj *unstructured.Unstructured) Resource {
	return Resource{
		APIVersion: obj.GetAPIVersion(),
		Kind:       obj.GetKind(),
		Namespace:  obj.GetNamespace(),
		Name:       obj.GetName(),
		Labels:     obj.GetLabels(),
	}
}

// Specificity says how closely a selector describes a resource. The higher one
// wins where two policies have the same explicit priority.
type Specificity int

const (
	// None means that the selector does not mean the resource.
	None Specificity = iota
	// All means that it was selected with all others of its kind.
	All
	// Labels means that a label selector found it.
	Labels
	// Name means that it was named.
	Name
)

// String returns the word that explanations use.
func (s Specificity) String() string {
	return [...]string{"none", "all of its kind", "by labels", "by name"}[s]
}

// Match says how specific s selects r. A name beats a label selector; with
// neither, every resource of the kind is meant. An empty label selector that
// is present counts as Labels.
func Match(s policyv1alpha1.ResourceSelector, r Resource) Specificity {
	switch {
	case s.APIVersion != r.APIVersion, s.Kind != r.Kind:
		return None
	case s.Namespace != "" && s.Namespace != r.Namespace:
		return None
	case s.Name != "":
		return when(s.Name == r.Name, Name)
	case s.LabelSelector == nil:
		return All
	default:
		return when(matchLabels(s.LabelSelector, r.Labels), Labels)
	}
}

// Best returns the highest specificity of any of the selectors.
func Best(ss []policyv1alpha1.ResourceSelector, r Resource) Specificity {
	best := None
	for _, s := range ss {
		best = max(best, Match(s, r))
	}
	return best
}

func when(matched bool, s Specificity) Specificity {
	if matched {
		return s
	}
	return None
}

func matchLabels(s *metav1.LabelSelector, set map[string]string) bool {
	if len(s.MatchExpressions) == 0 {
		for k, want := range s.MatchLabels {
			if got, ok := set[k]; !ok || got != want {
				return false
			}
		}
		return true
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && compiled.Matches(labels.Set(set))
}
