package commitstatus_test

import (
	"strings"
	"testing"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// TestACommentListsEachCluster: a Provider that comments gets reports of a source only, with what has become of the
// commit in each cluster.
func TestACommentListsEachCluster(t *testing.T) {
	w := newWorld(t)
	w.fetched(first)
	w.provider("forge", "http://127.0.0.1:1")
	provider := &notificationv1beta3.Provider{}
	if err := w.Hub.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "forge"}, provider); err != nil {
		t.Fatal(err)
	}
	provider.Spec.Type = notificationv1beta3.GiteaPullRequestCommentProvider
	if err := w.Hub.Update(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	w.seen(provider)
	w.applied(first)
	w.runs("east")
	w.runs("west")

	east, west := w.cluster("east"), w.cluster("west")
	var of, sum gitopsv1alpha1.CommitStatus
	w.until("all is told", func() (bool, string) {
		var messages []string
		for _, cs := range w.statuses() {
			if cs.Spec.SourceRef != nil {
				sum = cs
			} else {
				of = cs
			}
			messages = append(messages, string(cs.Spec.State)+" "+cs.Spec.Description)
		}
		return of.Spec.State == gitopsv1alpha1.CommitSuccess && sum.Spec.State == gitopsv1alpha1.CommitSuccess && reasonOf(of) != "", strings.Join(messages, "; ")
	})
	if diff := cmp.Diff([]gitopsv1alpha1.ClusterState{{Name: east, State: "Healthy"}, {Name: west, State: "Healthy"}}, of.Spec.ClusterStates); diff != "" || of.Spec.Comment != "" {
		t.Errorf("the Kustomization's, with comment %q (-want +got):\n%s", of.Spec.Comment, diff)
	}
	if reason := reasonOf(of); reason != gitopsv1alpha1.CommitStatusReasonInComment {
		t.Errorf("the Kustomization's is %s, want InComment", reason)
	}
	want := "### `flotilla/fleet`: ✅ runs everywhere at `11111111`\n\n`1 ready`\n\n| cluster | | what |\n| --- | --- | --- |\n| `" + east + "` `" + west +
		"` | ✅ runs it | |\n\n| Kustomization | | what |\n| --- | --- | --- |\n| `shop` | ✅ ready | `2/2 clusters ready` |\n"
	if diff := cmp.Diff(want, sum.Spec.Comment); diff != "" {
		t.Errorf("the comment (-want +got):\n%s", diff)
	}
}

func reasonOf(cs gitopsv1alpha1.CommitStatus) string {
	if len(cs.Status.Conditions) == 0 {
		return ""
	}
	return cs.Status.Conditions[0].Reason
}
