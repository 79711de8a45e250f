package situation_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// What a Kustomization says of a child that failed is told of the child alone, and that is what to see to first.
func TestAParentWhoseChildFailed(t *testing.T) {
	const circle = "circular dependency detected: flux-system/web -> flux-system/apps, and flux-system/apps waits for the health of flux-system/web: remove one spec.dependsOn of these"
	failed := func(name, reason, message string, stalled bool) *kustomizev1.Kustomization {
		ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
		ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		if stalled {
			ks.Status.Conditions = append(ks.Status.Conditions, metav1.Condition{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		}
		return ks
	}
	survey := situation.NewSurvey(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "")
	survey.Kustomization(failed("apps", meta.HealthCheckFailedReason, "health check failed: Kustomization/flux-system/web: "+circle+"; Deployment/shop/db: not ready 0/1", false))
	survey.Kustomization(failed("web", "DependencyCycle", circle, true))
	want := []situation.Problem{
		{State: situation.Failed, Kind: "Kustomization", Namespace: "flux-system", Name: "web", Message: circle, Next: "put right what it says, then: flotilla reconcile kustomization web -n flux-system"},
		{State: situation.Failed, Kind: "Kustomization", Namespace: "flux-system", Name: "apps",
			Message: "health check failed: Kustomization/flux-system/web; Deployment/shop/db: not ready 0/1", Next: "mend that first: flotilla tree kustomization/web -n flux-system"},
	}
	if diff := cmp.Diff(want, survey.Fleet().Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestAChildThatAHeldCommitRetires: its folder is gone with the commit that retires it, which the brake holds. To add the folder
// again would undo that.
func TestAChildThatAHeldCommitRetires(t *testing.T) {
	failed := func(name, reason, revision, message string) *kustomizev1.Kustomization {
		ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
		ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		ks.Status.LastAttemptedRevision, ks.Status.LastAppliedRevision = revision, revision
		return ks
	}
	const follows = "follows from Kustomization flux-system/root: its commit retires or moves this one, and is held"
	const mend = "correct spec.path where Kustomization flux-system/root has it, add that folder, or drop this Kustomization there to remove what it runs, and commit; the last revision keeps running. flotilla trace kustomization/apps -n flux-system"
	for name, tc := range map[string]struct {
		root, revision string // of the root: its reason, and the revision that it tried
		want           string
	}{
		"the commit is held":         {root: "PruneBlocked", revision: "main@sha1:b", want: follows},
		"another commit is held":     {root: "PruneBlocked", revision: "main@sha1:a", want: mend},
		"its parent has other cares": {root: "BuildFailed", revision: "main@sha1:b", want: mend},
	} {
		t.Run(name, func(t *testing.T) {
			child := failed("apps", "PathNotFound", "main@sha1:b", "kustomization path not found: apps")
			child.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/namespace": "flux-system", "kustomize.toolkit.fluxcd.io/name": "root"}
			survey := situation.NewSurvey(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "")
			survey.Kustomization(child)
			survey.Kustomization(failed("root", tc.root, tc.revision, "it is refused"))
			var order, got []string
			for _, p := range survey.Fleet().Problems {
				if order = append(order, p.Name); p.Name == "apps" {
					got = append(got, p.Next)
				}
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("next step of the child (-want +got):\n%s", diff)
			}
			if tc.want == follows && order[0] != "root" {
				t.Errorf("the problems are of %v: the cause is not first", order)
			}
		})
	}
}
