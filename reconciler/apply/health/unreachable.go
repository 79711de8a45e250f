package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

// MaxUnreachableAnnotation on a Kustomization is of how many of its clusters nothing need be heard for it
// to be ready: a number, or a percentage, which is rounded down. Missing: of none.
const MaxUnreachableAnnotation = "kustomize.flotilla.io/max-unreachable"

// MaxUnreachableOf returns what the annotation of a Kustomization says.
func MaxUnreachableOf(ks *kustomizev1.Kustomization) (intstr.IntOrString, error) {
	text, set := ks.Annotations[MaxUnreachableAnnotation]
	if !set {
		return intstr.IntOrString{}, nil
	}
	most := intstr.Parse(text)
	if n, err := intstr.GetScaledValueFromIntOrPercent(&most, 100, false); err != nil || n < 0 || most.Type == intstr.String && n > 100 {
		return intstr.IntOrString{}, fmt.Errorf("the annotation %s is %q: make it a number of clusters, such as 1, or a percentage, such as 10%%", MaxUnreachableAnnotation, text)
	}
	return most, nil
}

// namedUncounted is how many clusters a text names.
const namedUncounted = 3

// Aside describes the clusters that what is healthy is meant for too, and in which it need not be or cannot be: those that
// have not reported, and those that do not exist; empty for none.
func (a Assessment) Aside() string {
	text := uncounted(a.Uncounted)
	if a.Absent != "" {
		text += "; " + a.Absent
	}
	return text
}

// uncounted describes clusters that have not reported, and need not be; empty for none.
func uncounted(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), namedUncounted)], ", ")
	if more := len(names) - namedUncounted; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("; not counting what was not heard of: %s (%s)", text, MaxUnreachableAnnotation)
}

// passed returns the clusters that do not count, as nothing is heard of them, sorted: all of those, or none if
// they are more than may be, or all that there are.
func passed(parts []*rollup.Part, most intstr.IntOrString) []string {
	all, silent := map[string]bool{}, map[string]bool{}
	for _, p := range parts {
		if p == nil {
			continue
		}
		for _, c := range p.Clusters {
			all[c.Name] = true
			if c.Silence != nil {
				silent[c.Name] = true
			}
		}
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&most, len(all), false)
	if err != nil || len(silent) > n || len(silent) == len(all) {
		return nil
	}
	return slices.Sorted(maps.Keys(silent))
}
