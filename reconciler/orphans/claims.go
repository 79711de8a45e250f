package orphans

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	policy "github.com/flotilla-io/flotilla/policies/orphans"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// soon is how long a Work that is recreated at once may take before its claim is reported. It is shorter than a commit waits
// before it counts as done.
const soon = 100 * time.Millisecond

// released are the claims that their Works have just left in their clusters: these are reported without the grace period. It
// is safe for use by several goroutines.
type released struct {
	mu        sync.Mutex
	byCluster map[string]map[policy.ID]bool
}

// from records a Work that is gone, and reports whether it has left a claim.
func (p *released) from(w *workv1alpha1.Work) bool {
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
	if _, carried := volumes.Carried(w); !ok || !carried || volumes.Released(w) {
		return false
	}
	asked := policy.Asked{}
	asked.Add(w)
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range asked {
		if volumes.IsVolumeClaim(id.Kind) {
			if p.byCluster[cluster] == nil {
				p.byCluster[cluster] = map[policy.ID]bool{}
			}
			p.byCluster[cluster][id] = true
		}
	}
	return true
}

// take returns the claims of a cluster, and forgets them.
func (p *released) take(cluster string) map[policy.ID]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.byCluster[cluster]
	delete(p.byCluster, cluster)
	return out
}

// sayClaims sets a cluster's condition about the claims among orphans that stay, and reports whether it changed.
func sayClaims(conditions *[]metav1.Condition, found []policy.Object, now time.Time) bool {
	var stay []types.NamespacedName
	for _, o := range found {
		if volumes.IsVolumeClaim(o.Kind) && !o.Leaving {
			stay = append(stay, o.NamespacedName)
		}
	}
	if len(stay) == 0 {
		return meta.RemoveStatusCondition(conditions, clusterv1alpha1.ClusterConditionClaimsKept)
	}
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionClaimsKept, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.OrphansFoundReason,
		Message: volumes.Staying(stay), LastTransitionTime: metav1.NewTime(now),
	})
}
