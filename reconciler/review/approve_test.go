package review_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// inEurope asks for an approval of what reaches clusters of eu.
func inEurope(by gitopsv1alpha1.ReviewApprovers) func(*gitopsv1alpha1.PullRequestReview) {
	return func(o *gitopsv1alpha1.PullRequestReview) {
		o.Spec.Approvals = []gitopsv1alpha1.ReviewApproval{{
			Name: "europe", By: by, Count: 1,
			Clusters: &gitopsv1alpha1.ApprovedClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}},
		}}
	}
}

// TestApprovals: a pull request that reaches what an approval protects is pending until it was given for the present head.
func TestApprovals(t *testing.T) {
	const awaits = "awaits europe: ann; " + updated
	w := newWorld(t, inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}))
	w.pulls[0].Author = "bob"
	w.wants("nobody approves", "comment on 1", "flotilla/review 1 pending: "+awaits)
	w.wantPhases("1 AwaitingApproval: "+updated, "Ready True Succeeded: pull requests: 1 awaiting approval")
	if body := w.comments[1]; !strings.Contains(body, "- ✋ **europe** has to be approved by `ann`\n") {
		t.Errorf("comment:\n%s", body)
	}
	w.wants("nothing is new")

	w.approvers = map[int64][]string{1: {"eve"}}
	w.pulls[0].Updated = "1"
	w.wants("somebody else approves")
	w.approvers[1] = []string{"ann"}
	w.pulls[0].Updated = "2"
	w.wants("she does", "flotilla/review 1 success: "+updated)
	w.wantPhases("1 Passed: "+updated, "Ready True Succeeded: pull requests: 1 passed")
	if diff := cmp.Diff([]gitopsv1alpha1.NeededApproval{{Name: "europe", Users: []string{"ann"}, Count: 1, By: []string{"ann"}}}, w.status().PullRequests[0].Approvals); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
	w.start()
	w.wants("after a restart")

	w.approvers[1] = nil
	w.pulls[0].Updated = "3"
	w.wants("it is dismissed", "flotilla/review 1 pending: "+awaits)
	w.approvers[1] = []string{"ann"}
	w.pulls[0].Updated = "4"
	w.wants("she approves again", "flotilla/review 1 success: "+updated)

	w.approvers[1] = nil
	w.commits[hash("2")], w.refs["refs/pull/1/head"], w.pulls[0].Head = w.commits[hash("1")], hash("2"), hash("2")
	w.wants("another head", "edit on 1", "flotilla/review 2 pending: "+awaits)
	w.approvers[1] = []string{"ann"}
	w.refuses = func(what string) error {
		return map[string]error{"approvers": errors.New("connection refused")}[what]
	}
	w.pulls[0].Updated = "5"
	w.wants("the forge does not say")
	w.refuses = func(string) error { return nil }
	w.wants("it does", "flotilla/review 2 success: "+updated)

	w.refs["main"], w.commits[hash("c")] = hash("c"), text(lines+"  d: one\n")
	w.bases[hash("2")] = hash("b")
	w.wants("the branch goes on", "flotilla/review 2 pending: main has changed: to be looked at again", "edit on 1", "flotilla/review 2 success: "+updated)
	w.refuses = func(what string) error {
		return map[string]error{"approvers": errors.New("connection refused")}[what]
	}
	w.pulls[0].Updated = "6"
	w.wants("what it said of this head stays while it does not say")
}

// TestApprovalsOfATeam: members count, as the forge has them now, and the author does not.
func TestApprovalsOfATeam(t *testing.T) {
	w := newWorld(t, inEurope(gitopsv1alpha1.ReviewApprovers{Teams: []string{"org/sre"}}))
	w.pulls[0].Author = "bob"
	w.approvers, w.members = map[int64][]string{1: {"bob", "sam"}}, map[string]bool{"org/sre bob": true}
	w.wants("the author alone is a member", "comment on 1", "flotilla/review 1 pending: awaits europe: team org/sre; "+updated)
	w.members["org/sre sam"] = true
	w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
	w.wants("sam has become one", "flotilla/review 1 success: "+updated)
}

// TestApprovalsOfOwners: who owns a file is what the branch says, whatever the pull request makes of that.
func TestApprovalsOfOwners(t *testing.T) {
	w := newWorld(t, inEurope(gitopsv1alpha1.ReviewApprovers{CodeOwners: true}))
	w.owners = map[string]string{hash("b"): "/app/ @ann\n", hash("1"): "* @bob\n"}
	w.pulls[0].Author, w.approvers = "bob", map[int64][]string{1: {"bob", "eve"}}
	w.wants("others approve", "comment on 1", "flotilla/review 1 pending: awaits europe: ann for app/web.yaml; "+updated)
	w.approvers[1] = []string{"ann"}
	w.pulls[0].Updated = "1"
	w.wants("the owner does", "flotilla/review 1 success: "+updated)

	w.refs["main"], w.commits[hash("c")] = hash("c"), text(lines+"  d: one\n")
	w.bases[hash("1")] = hash("b")
	w.wants("the branch has no owners any more", "flotilla/review 1 pending: main has changed: to be looked at again", "edit on 1",
		"flotilla/review 1 pending: awaits europe: nobody can give it for app/web.yaml; "+updated)

	w.refs["main"], w.commits[hash("d")] = hash("d"), text(lines+"  e: one\n")
	w.refuses = func(what string) error {
		return map[string]error{"owners": errors.New("connection refused")}[what]
	}
	w.wants("the forge does not say who",
		"flotilla/review 1 pending: cannot be looked at now, and is tried again: see the PullRequestReview fleet")
}

// TestApprovalsOfWhatIsEncrypted: what an encrypted file says is not compared, so that a change of it needs all approvals.
func TestApprovalsOfWhatIsEncrypted(t *testing.T) {
	w := newWorld(t, inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}))
	w.commits[hash("b")]["secrets.enc.yaml"] = artifact.File{Data: []byte("a: ENC[AES256_GCM,data:AAAA,iv:AA==,tag:AA==,type:str]\n")}
	w.commits[hash("1")] = artifact.Files{"app/web.yaml": w.commits[hash("b")]["app/web.yaml"], "secrets.enc.yaml": {Data: []byte("a: ENC[AES256_GCM,data:BBBB,iv:AA==,tag:AA==,type:str]\n")}}
	w.wants("it changes", "comment on 1", "flotilla/review 1 pending: awaits europe: ann; Nothing changes in any cluster.")
}

// TestTheForgeIsAskedSeldom: a pull request to which nothing happens costs no request at each interval.
func TestTheForgeIsAskedSeldom(t *testing.T) {
	w := newWorld(t, inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}))
	for _, want := range []int{1, 2, 2, 2} {
		if w.pass(); w.asked != want {
			t.Fatalf("asked %d times, want %d", w.asked, want)
		}
	}
	w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
	if w.pass(); w.asked != 3 {
		t.Fatalf("asked %d times after ten minutes, want 3", w.asked)
	}
}

func TestWhatNeedsNoApproval(t *testing.T) {
	w := newWorld(t, func(o *gitopsv1alpha1.PullRequestReview) {
		o.Spec.Approvals = []gitopsv1alpha1.ReviewApproval{
			{Name: "asia", By: gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}, Clusters: &gitopsv1alpha1.ApprovedClusters{Names: []string{"ap-1"}}},
			{Name: "bank", By: gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}, Namespaces: []string{"bank"}},
		}
	})
	w.wants("it reaches nothing of that", "comment on 1", "flotilla/review 1 success: "+updated)
	if w.asked != 0 {
		t.Errorf("asked %d times", w.asked)
	}
}

// TestWhoeverEditsApprovals: a pull request that may do away with approvals needs all of them, although no cluster has anything else.
func TestWhoeverEditsApprovals(t *testing.T) {
	w := newWorld(t, inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}))
	files := text(lines)
	files["reviews/fleet.yaml"] = artifact.File{Data: []byte("kind: PullRequestReview\n")}
	w.commits[hash("1")] = files
	w.wants("it adds one", "comment on 1", "flotilla/review 1 pending: awaits europe: ann; Nothing changes in any cluster.")
	w.commits[hash("c")], w.refs["main"], w.bases[hash("1")] = files, hash("c"), hash("b")
	w.commits[hash("2")] = text(lines)
	w.refs["refs/pull/1/head"], w.pulls[0].Head, w.bases[hash("2")] = hash("2"), hash("2"), hash("c")
	w.wants("it takes one away", "edit on 1", "flotilla/review 2 pending: awaits europe: ann; Nothing changes in any cluster.")
}

// TestApprovalsOfOneHead: of two pull requests with one head, the one that waits counts.
func TestApprovalsOfOneHead(t *testing.T) {
	w := newWorld(t, func(o *gitopsv1alpha1.PullRequestReview) {
		inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}})(o)
		o.Spec.Branches = []string{"main", "prod"}
	})
	w.refs["prod"] = hash("b")
	w.pulls = append(w.pulls, forge.PullRequest{Number: 2, Head: hash("1"), Ref: "refs/pull/1/head", Base: "prod"})
	w.approvers = map[int64][]string{1: {"ann"}}
	w.wants("one is approved", "comment on 1", "comment on 2", "flotilla/review 1 pending: pull request 2: awaits europe: ann; "+updated)
	w.approvers[2] = []string{"ann"}
	w.pulls[1].Updated = "1"
	w.wants("both are", "flotilla/review 1 success: pull request 1: "+updated)
}

func TestApprovalsThatCannotBeAsked(t *testing.T) {
	w := newWorld(t, func(o *gitopsv1alpha1.PullRequestReview) {
		inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}})(o)
		o.Spec.Approvals[0].Clusters.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
	})
	w.wants("nothing is reviewed")
	w.wantPhases(`Ready False InvalidApproval: spec.approvals[0].clusters.labelSelector of europe: "Is" is not a valid label selector operator`)
	object := &gitopsv1alpha1.PullRequestReview{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: "flux", Name: "fleet"}, object); err != nil {
		t.Fatal(err)
	}
	inEurope(gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}})(object)
	if err := w.hub.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.wants("it is mended", "comment on 1", "flotilla/review 1 pending: awaits europe: ann; "+updated)
}
