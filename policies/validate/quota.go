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
	"github.com/flotilla-io/flotilla/policies/quota"
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

// standard are the resources that need no prefix of who defined them; those below
// wholly are counted, and come in whole numbers.
var (
	standard = []string{
		"cpu", "memory", "ephemeral-storage", "storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
		"limits.cpu", "limits.memory", "limits.ephemeral-storage",
	}
	wholly = quota.Objects()
)

// resourceName checks the name of what a quota limits.
func resourceName(name string, path *field.Path) field.ErrorList {
	if errs := syntax.LabelName(name, path); len(errs) > 0 {
		return errs
	}
	hugePages := strings.HasPrefix(strings.TrimPrefix(name, "requests."), "hugepages-")
	if strings.Contains(name, "/") || hugePages || slices.Contains(standard, name) || slices.Contains(wholly, name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "must be a standard resource for quota, or have the prefix of who defined it")}
}

// amounts checks names and quantities.
func amounts(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sorted(list) {
		at := path.Key(string(name))
		errs = append(errs, resourceName(string(name), at)...)
		q := list[name]
		switch {
		case q.Sign() < 0:
			errs = append(errs, field.Invalid(at, q.String(), "must be greater than or equal to 0"))
		case slices.Contains(wholly, string(name)) && q.MilliValue()%1000 != 0:
			errs = append(errs, field.Invalid(at, q.String(), "must be an integer"))
		}
	}
	return errs
}

// uncounted warns of resources of which bindings do not say what workloads ask for.
func uncounted(list corev1.ResourceList, path *field.Path) []string {
	var out []string
	for _, name := range sorted(list) {
		if _, counts := quota.Counted(name); !counts {
			out = append(out, syntax.Advise(path.Key(string(name)), "nothing counts against it: only what Pods request is counted; spec.staticAssignments limit it in clusters"))
		}
	}
	return out
}
