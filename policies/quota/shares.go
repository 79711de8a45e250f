package quota

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// Shares are the amounts that single clusters may use by a quota, by cluster. Of several for
// one cluster the last one holds.
func Shares(q *policyv1alpha1.FederatedResourceQuota) map[string]corev1.ResourceList {
	out := make(map[string]corev1.ResourceList, len(q.Spec.StaticAssignments))
	for i := range q.Spec.StaticAssignments {
		out[q.Spec.StaticAssignments[i].ClusterName] = q.Spec.StaticAssignments[i].Hard
	}
	return out
}

// CheckShare reports whether the share that a cluster has of a quota allows delta in addition to what the cluster says that
// is used of it. A cluster without a share allows everything, and one that has said nothing yet uses nothing.
//
// Errors: *ExceededError.
func CheckShare(q *policyv1alpha1.FederatedResourceQuota, cluster string, delta corev1.ResourceList) error {
	used := corev1.ResourceList{}
	for i := range q.Status.AggregatedStatus {
		if says := &q.Status.AggregatedStatus[i]; says.ClusterName == cluster {
			for limit, amount := range says.Used {
				if name, counts := countedInShare(limit); counts {
					used[name] = amount
				}
			}
		}
	}
	if over := excesses(Shares(q)[cluster], used, delta); len(over) > 0 {
		return &ExceededError{Namespace: q.Namespace, Name: q.Name, Cluster: cluster, Excesses: over}
	}
	return nil
}

// Aggregated is what clusters say of their shares of a quota, sorted by cluster. Works are
// those that bring the shares, by cluster. A cluster that has not reported anything yet is left
// out, and so is one that has no share any more.
//
// Errors: what a cluster says cannot be read; the others are there.
func Aggregated(q *policyv1alpha1.FederatedResourceQuota, works map[string]*workv1alpha1.Work) ([]policyv1alpha1.ClusterQuotaStatus, error) {
	var out []policyv1alpha1.ClusterQuotaStatus
	var unread []string
	for cluster := range Shares(q) {
		status, err := statusOf(works[cluster])
		if err != nil {
			unread = append(unread, fmt.Sprintf("cluster %s: %v", cluster, err))
		}
		if status == nil {
			continue
		}
		out = append(out, policyv1alpha1.ClusterQuotaStatus{ClusterName: cluster, ResourceQuotaStatus: *status})
	}
	slices.SortFunc(out, func(a, b policyv1alpha1.ClusterQuotaStatus) int { return strings.Compare(a.ClusterName, b.ClusterName) })
	if len(unread) > 0 {
		slices.Sort(unread)
		return out, fmt.Errorf("read what is used of shares: %s", strings.Join(unread, "; "))
	}
	return out, nil
}

// statusOf returns the status of the ResourceQuota that a Work brings; nil: there is none yet.
func statusOf(work *workv1alpha1.Work) (*corev1.ResourceQuotaStatus, error) {
	if work == nil || len(work.Status.ManifestStatuses) == 0 || work.Status.ManifestStatuses[0].Status == nil {
		return nil, nil
	}
	out := &corev1.ResourceQuotaStatus{}
	if err := json.Unmarshal(work.Status.ManifestStatuses[0].Status.Raw, out); err != nil {
		return nil, err
	}
	if len(out.Hard) == 0 {
		return nil, nil
	}
	return out, nil
}
