package unreviewed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unreviewed"
)

func TestWith(t *testing.T) {
	review := func(name string, status metav1.ConditionStatus, suspended bool) client.Object {
		r := &gitopsv1alpha1.PullRequestReview{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: name}}
		r.Spec.Suspend = suspended
		r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: "Refused", Message: "access\ndenied"}}
		return r
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		review("bad", metav1.ConditionFalse, false), review("good", metav1.ConditionTrue, false), review("off", metav1.ConditionFalse, true),
		&gitopsv1alpha1.PullRequestReview{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "new"}},
	).Build()
	got, err := unreviewed.With(t.Context(), hub, client.InNamespace(""), situation.Fleet{})
	if err != nil {
		t.Fatal(err)
	}
	want := []situation.Note{{
		Kind: "PullRequestReview", Namespace: "flux", Name: "bad", Message: "pull requests are not told what their merge does: Refused: access denied",
		Next: "mend what it says; it is tried again by itself: flotilla describe pullrequestreview bad -n flux",
	}}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
