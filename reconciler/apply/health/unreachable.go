package health

import (
	"fmt"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// MaxUnreachableAnnotation on a Kustomization is how many of its clusters may be silent without keeping it from being
// ready: a number, or a percentage, which is rounded down. If it is missing, none may.
const MaxUnreachableAnnotation = "kustomize.flotilla.io/max-unreachable"

// MaxUnreachableOf returns the value of the annotation of a Kustomization; 0 if it is missing.
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

// Aside describes the clusters in which the objects are not known to be healthy although the assessment is: silent
// ones that do not count, and ones that do not exist. It is empty for none.
func (a Assessment) Aside() string {
	text := uncounted(a.Uncounted)
	if a.Absent != "" {
		text += "; " + a.Absent
	}
	return text
}

// uncounted describes silent clusters that do not count; empty for none.
func uncounted(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; not counting what was not heard of: %s (%s)", excerpt.Names(names, namedUncounted), MaxUnreachableAnnotation)
}

// passed returns the silent clusters that do not count, sorted. These are all silent ones, or none if they are more
// than allowed, or if every cluster is silent.
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
