package reporting

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Work returns the Events of a Work; before is nil for a new one.
func Work(before, after *workv1alpha1.Work) []Event {
	if after.DeletionTimestamp != nil {
		return nil
	}
	if before == nil || before.UID != after.UID {
		before = &workv1alpha1.Work{}
	}
	return slices.Concat(overridden(before, after), written(before, after), dispatched(before, after), applied(before, after), reflected(before, after))
}

// overridden reports that overrides were applied to what the Work holds.
func overridden(was, is *workv1alpha1.Work) []Event {
	for _, note := range []string{policyv1alpha1.AppliedOverrides, policyv1alpha1.AppliedClusterOverrides} {
		if text := is.Annotations[note]; text != "" && text != was.Annotations[note] {
			return []Event{good(Template, policyv1alpha1.EventReasonApplyOverridePolicySucceed, "Overrides were applied.")}
		}
	}
	return nil
}

func written(was, is *workv1alpha1.Work) []Event {
	if was.Generation == is.Generation {
		return nil
	}
	return []Event{good(Both, workv1alpha2.EventReasonSyncWorkSucceed, "The Works of all clusters were written.")}
}

// dispatched reports that the Work is held back, or is not any more.
func dispatched(was, is *workv1alpha1.Work) []Event {
	before, now := status(was, workv1alpha1.WorkDispatching), meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkDispatching)
	if now == nil || now.Status == before || before == "" && now.Status == metav1.ConditionTrue {
		return nil
	}
	return []Event{good(Itself, workv1alpha1.EventReasonWorkDispatching, now.Message)}
}

// applied reports that the cluster has what the Work asks for now.
func applied(was, is *workv1alpha1.Work) []Event {
	before, now := meta.FindStatusCondition(was.Status.Conditions, workv1alpha1.WorkApplied), meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkApplied)
	if now == nil || now.Status != metav1.ConditionTrue {
		return nil
	}
	if before != nil && before.Status == metav1.ConditionTrue && before.ObservedGeneration == now.ObservedGeneration {
		return nil
	}
	return []Event{good(Itself, workv1alpha1.EventReasonSyncWorkloadSucceed, "The cluster has what the Work asks for.")}
}

// reflected reports that statuses were read, and healths judged.
func reflected(was, is *workv1alpha1.Work) (out []Event) {
	var read, judged bool
	for i := range is.Status.ManifestStatuses {
		now, before := &is.Status.ManifestStatuses[i], workv1alpha1.ManifestStatus{}
		if at := slices.IndexFunc(was.Status.ManifestStatuses, func(m workv1alpha1.ManifestStatus) bool { return m.Identifier == now.Identifier }); at >= 0 {
			before = was.Status.ManifestStatuses[at]
		}
		read = read || now.Status != nil && !equality.Semantic.DeepEqual(before.Status, now.Status)
		judged = judged || now.Health != "" && now.Health != before.Health
	}
	if read {
		out = append(out, good(Itself, workv1alpha1.EventReasonReflectStatusSucceed, "The status of what the cluster has was read."))
	}
	if judged {
		out = append(out, good(Itself, workv1alpha1.EventReasonInterpretHealthSucceed, "The health of what the cluster has was judged."))
	}
	return out
}

// status is that of a condition; empty: there is none.
func status(w *workv1alpha1.Work, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// Quota returns the Events of a quota; before is nil for a new one.
func Quota(before, after *policyv1alpha1.FederatedResourceQuota) []Event {
	if before == nil || before.UID != after.UID {
		before = &policyv1alpha1.FederatedResourceQuota{}
	}
	var out []Event
	if is := after.Status.AggregatedStatus; len(is) > 0 && !equality.Semantic.DeepEqual(before.Status.AggregatedStatus, is) {
		out = append(out, good(Itself, workv1alpha2.EventReasonAggregateStatusSucceed, "What clusters use of their shares was added up."))
	}
	if is := after.Status; len(is.Overall) > 0 && (!equality.Semantic.DeepEqual(before.Status.Overall, is.Overall) || !equality.Semantic.DeepEqual(before.Status.OverallUsed, is.OverallUsed)) {
		out = append(out, good(Itself, policyv1alpha1.EventReasonCollectOverallStatusSucceed, "What is used of the quota was counted."))
	}
	return out
}
