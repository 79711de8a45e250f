package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const enforcing = `
apiVersion: gitops.flotilla.io/v1alpha1
kind: PullRequestReview
metadata: {name: src, namespace: %s}
spec:
  sourceRef: {name: src}
  providerRef: {name: commits}
  interval: 10s
  enforce: true
  approvals:
    - name: europe
      clusters: {names: [east]}
      by: {users: [ann]}
`

// TestEnforced: at a real forge, the merge of a pull request that ann has approved is applied, whatever else the branch got meanwhile;
// what somebody merges without that, or pushes, reaches no cluster before the commit is let pass.
func TestEnforced(t *testing.T) {
	f := startForge(t)
	repo := f.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(reviewed, namespace, "1.29"))
	first := repo.push("the application")
	address, api := strings.TrimSuffix(repo.url, ".git"), fmt.Sprintf("/api/v1/repos/%s/%s", f.owner, namespace)
	f.must(t, http.MethodPost, "/api/v1/admin/users", map[string]any{"username": "ann", "email": "ann@example.com", "password": "fleet-e2e-password", "must_change_password": false})
	f.must(t, http.MethodPut, api+"/collaborators/ann", map[string]any{"permission": "write"})
	the.follow(t, repo.url, "interval: 1h\nsecretRef: {name: forge}", "suspend: true")
	the.Apply(t, fmt.Sprintf(forgeAccess, namespace, f.token, address))
	the.Kubectl(t, "", "patch", "kustomization", "app", "-n", namespace, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	the.applied(t, namespace, first, 2*time.Minute)
	the.Apply(t, fmt.Sprintf(enforcing, namespace))
	key := types.NamespacedName{Namespace: namespace, Name: "src"}
	eventually(t, time.Minute, "what there is has its approvals", func(ctx context.Context) error {
		var review gitopsv1alpha1.PullRequestReview
		if err := the.hub.Get(ctx, key, &review); err != nil {
			return err
		}
		if e := review.Status.Enforced; e == nil || e.ApprovedCommit != first {
			return fmt.Errorf("%+v", e)
		}
		return nil
	})

	// propose opens a pull request, and merge merges it as one commit, which it returns.
	propose := func(branch, version string) (number int64, head string) {
		repo.git("checkout", "--quiet", "-b", branch, "main")
		repo.write("app/web.yaml", fmt.Sprintf(reviewed, namespace, version))
		repo.git("add", "--all")
		repo.git("commit", "--quiet", "-m", version)
		repo.git("push", "--quiet", "origin", branch)
		out, err := f.call(t.Context(), http.MethodPost, api+"/pulls", map[string]any{"base": "main", "head": branch, "title": version})
		var made struct{ Number int64 }
		if err == nil {
			err = json.Unmarshal(out, &made)
		}
		if err != nil {
			t.Fatal(err)
		}
		head = repo.git("rev-parse", "HEAD")
		repo.git("checkout", "--quiet", "main")
		return made.Number, head
	}
	merge := func(number int64) string {
		eventually(t, time.Minute, "the pull request is merged", func(ctx context.Context) error {
			_, err := f.call(ctx, http.MethodPost, fmt.Sprintf("%s/pulls/%d/merge", api, number), map[string]any{"Do": "squash"})
			return err
		})
		repo.git("pull", "--quiet", "origin", "main")
		the.Kubectl(t, "", "annotate", "gitrepository", "src", "-n", namespace, "--overwrite", "reconcile.fluxcd.io/requestedAt="+time.Now().String())
		return repo.git("rev-parse", "HEAD")
	}
	runs := func() string {
		var web appsv1.Deployment
		if err := the.members["east"].Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &web); err != nil {
			t.Fatal(err)
		}
		return web.Spec.Template.Spec.Containers[0].Image
	}
	held := func(commit, why string) {
		eventually(t, time.Minute, "commit "+commit[:8]+" is held", func(ctx context.Context) error {
			var ks kustomizev1.Kustomization
			if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "app"}, &ks); err != nil {
				return err
			}
			ready := apimeta.FindStatusCondition(ks.Status.Conditions, "Ready")
			if ready == nil || ready.Reason != "ApprovalMissing" || !strings.Contains(ready.Message, commit) || !strings.Contains(ready.Message, why) {
				return fmt.Errorf("Ready is %+v", ready)
			}
			return nil
		})
	}

	number, head := propose("one", "1.30")
	f.must(t, http.MethodPost, fmt.Sprintf("%s/pulls/%d/reviews?sudo=ann", api, number), map[string]any{"event": "APPROVED", "commit_id": head})
	the.applied(t, namespace, merge(number), 2*time.Minute)
	if image := runs(); image != "nginx:1.30" {
		t.Errorf("east runs %s", image)
	}

	number, _ = propose("two", "1.31")
	second := merge(number)
	held(second, fmt.Sprintf("pull request %d awaits europe: ann", number))
	repo.write("README.md", "nothing that is applied")
	third := repo.push("a push that changes nothing")
	the.Kubectl(t, "", "annotate", "gitrepository", "src", "-n", namespace, "--overwrite", "reconcile.fluxcd.io/requestedAt="+time.Now().String())
	held(third, fmt.Sprintf("pull request %d awaits europe: ann", number))
	if image := runs(); image != "nginx:1.30" {
		t.Errorf("east runs %s, of what is held", image)
	}
	the.Kubectl(t, "", "annotate", "pullrequestreview", "src", "-n", namespace, "gitops.flotilla.io/approved-commit="+third)
	the.applied(t, namespace, third, 2*time.Minute)
	if image := runs(); image != "nginx:1.31" {
		t.Errorf("east runs %s, once it is let pass", image)
	}
}
