package rollup

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Strayed is how a reason begins that says of an object that others changed it in its
// cluster, or removed it, and that it is left so.
const Strayed = "differs from what was applied, and is left so: "

// driftOf is what a binding says of what members changed and what is left so.
func driftOf(b workv1alpha2.Binding) string {
	if c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Drifted); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// strayed is why nobody tells the health of an object: somebody removed or changed it, and it
// is left so. Empty where that is not so, or where it is not known.
func (v *view) strayed(target workv1alpha2.TargetCluster, item *workv1alpha2.AggregatedStatusItem) string {
	if item.Health == workv1alpha2.ResourceHealthy || item.Health == workv1alpha2.ResourceUnhealthy {
		return ""
	}
	if v.works == nil {
		return toldOf(v.drift, target.Name)
	}
	return v.said(target, workv1alpha1.WorkDrifted, metav1.ConditionTrue)
}

// toldOf returns what a text of tell says of a cluster, up to the first semicolon; empty where
// it does not name it.
func toldOf(text, cluster string) string {
	for part := range strings.SplitSeq(text, "; ") {
		of, said, _ := strings.Cut(part, ": ")
		of, _, _ = strings.Cut(of, " and ")
		if slices.Contains(strings.Split(of, ", "), cluster) {
			return said
		}
	}
	return ""
}
