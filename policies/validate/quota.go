package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// Quota says what is wrong with q.
func Quota(q *policyv1alpha1.FederatedResourceQuota) (field.ErrorList, []string) {
	path := field.NewPath("spec")
	overall := path.Child("overall")
	errs := amounts(q.Spec.Overall, overall)
	shares := map[corev1.ResourceName]resource.Quantity{}
	seen := map[string]bool{}
	var warnings []string
	for i := range q.Spec.StaticAssignments {
		share, at := &q.Spec.StaticAssignments[i], path.Child("staticAssignments").Index(i)
		errs = append(errs, syntax.ClusterName(share.ClusterName, at.Child("clusterName"))...)
		if seen[share.ClusterName] {
			warnings = append(warnings, syntax.Advise(at.Child("clusterName"), "%s has a share already: only one of them can hold; remove the other", share.ClusterName))
		}
		seen[share.ClusterName] = true
		errs = append(errs, amounts(share.Hard, at.Child("hard"))...)
		for _, name := range sorted(share.Hard) {
			if _, limited := q.Spec.Overall[name]; !limited {
				errs = append(errs, field.Invalid(at.Child("hard").Key(string(name)), name, "the resource is not part of spec.overall"))
			}
			sum := shares[name]
			sum.Add(share.Hard[name])
			shares[name] = sum
		}
	}
	for _, name := range sorted(shares) {
		sum, limit := shares[name], q.Spec.Overall[name]
		if _, limited := q.Spec.Overall[name]; limited && sum.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(overall.Key(string(name)), limit.String(),
				fmt.Sprintf("is less than the sum of staticAssignments, %s", sum.String())))
		}
	}
	return errs, append(warnings, uncounted(q.Spec.Overall, overall)...)
}

func sorted(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// amounts checks names and quantities.
func amounts(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sorted(list) {
		errs = append(errs, syntax.LabelName(string(name), path.Key(string(name)))...)
		if q := list[name]; q.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), q.String(), "must be greater than or equal to 0"))
		}
	}
	return errs
}

// uncounted warns of resources that a workload never asks for by that name.
func uncounted(list corev1.ResourceList, path *field.Path) []string {
	var out []string
	for _, name := range sorted(list) {
		short, isRequest := strings.CutPrefix(string(name), "requests.")
		switch {
		case isRequest:
			out = append(out, syntax.Advise(path.Key(string(name)), "nothing counts against it: name the resource as pods request it, %s", short))
		case strings.HasPrefix(string(name), "limits."):
			out = append(out, syntax.Advise(path.Key(string(name)), "nothing counts against it: only requests are counted; name the resource as pods request it"))
		}
	}
	return out
}
