package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const reviewed = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [east, edge, west]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: eu, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
    - targetCluster: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}
      overriders: {imageOverrider: [{component: Tag, operator: replace, value: "%[2]s"}]}
`

const reviewing = `
apiVersion: v1
kind: Secret
metadata: {name: hook, namespace: %[1]s}
stringData: {token: e2e-hook-token}
---
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: {name: hook, namespace: %[1]s}
spec:
  type: generic
  secretRef: {name: hook}
  resources: [{kind: GitRepository, name: src}]
---
apiVersion: gitops.flotilla.io/v1alpha1
kind: PullRequestReview
metadata: {name: src, namespace: %[1]s}
spec:
  sourceRef: {name: src}
  providerRef: {name: commits}
  interval: 1h
  rules:
    - name: nothing-is-deleted
      expression: comparison.summary.deleted == 0
      message: ask the platform team
`

// TestReview: a pull request that changes an override for one region is told so within seconds, cannot be merged while that breaks
// a rule, and does what was promised, to the byte, once it is merged.
func TestReview(t *testing.T) {
	f := startForge(t)
	repo := f.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(reviewed, namespace, "1.29"))
	first := repo.push("the application")
	address, api := strings.TrimSuffix(repo.url, ".git"), fmt.Sprintf("/api/v1/repos/%s/%s", f.owner, namespace)
	the.follow(t, repo.url, "interval: 1h\nsecretRef: {name: forge}", "suspend: true")
	the.Apply(t, fmt.Sprintf(forgeAccess, namespace, f.token, address))
	the.Kubectl(t, "", "patch", "kustomization", "app", "-n", namespace, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	the.applied(t, namespace, first, 2*time.Minute)
	the.Apply(t, fmt.Sprintf(reviewing, namespace))
	the.Kubectl(t, "", "wait", "receiver/hook", "-n", namespace, "--for=condition=Ready", "--timeout=1m")
	path := the.Kubectl(t, "", "get", "receiver", "hook", "-n", namespace, "-o", "jsonpath={.status.webhookPath}")
	f.must(t, http.MethodPost, api+"/hooks", map[string]any{"type": "gitea", "active": true, "events": []string{"push", "pull_request", "pull_request_sync"}, "config": map[string]string{"url": "http://" + the.hooks + path, "content_type": "json"}})
	f.must(t, http.MethodPost, api+"/branch_protections", map[string]any{"rule_name": "main", "enable_push": true, "enable_status_check": true, "status_check_contexts": []string{"flotilla/review"}})

	repo.git("checkout", "--quiet", "-b", "next")
	push := func(policy, why string) string {
		repo.write("app/web.yaml", policy)
		repo.git("add", "--all")
		repo.git("commit", "--quiet", "-m", why)
		repo.git("push", "--quiet", "origin", "next")
		return repo.git("rev-parse", "HEAD")
	}
	_, rest, _ := strings.Cut(fmt.Sprintf(reviewed, namespace, "1.29"), "---\n")
	bad := push(rest, "the application goes")
	f.must(t, http.MethodPost, api+"/pulls", map[string]any{"base": "main", "head": "next", "title": "The next version @everyone"})
	begun := time.Now()
	f.ends(t, bad, "flotilla/review", "failure", "breaks the rule nothing-is-deleted: ")
	t.Logf("the pull request is told after %s", time.Since(begun).Round(time.Millisecond))
	if _, err := f.call(t.Context(), http.MethodPost, api+"/pulls/1/merge", map[string]any{"Do": "merge"}); err == nil {
		t.Fatal("it was merged although it breaks a rule")
	}

	head := push(fmt.Sprintf(reviewed, namespace, "1.30"), "the next version in eu")
	begun = time.Now()
	f.ends(t, head, "flotilla/review", "success", "1 object changes in 1 cluster: 1 updated; 1 pod restarts")
	took := time.Since(begun).Round(time.Millisecond)
	t.Logf("a new head is told after %s", took)
	if took > slack*5*time.Second {
		t.Errorf("a new head is told after %s", took)
	}
	comments, err := f.comments(t.Context(), api)
	if err != nil || len(comments) != 1 {
		t.Fatalf("there are %d comments: %q, %v; want 1", len(comments), comments, err)
	}
	for _, part := range []string{"### Updated\n\n`Deployment " + namespace + "/web`: `east`\n", "-      - image: nginx:1.29\n+      - image: nginx:1.30\n"} {
		if !strings.Contains(comments[0], part) {
			t.Errorf("%q is not in the comment:\n%s", part, comments[0])
		}
	}

	works, objects := promised(t, namespace)
	merge := func(ctx context.Context) error {
		_, err := f.call(ctx, http.MethodPost, api+"/pulls/1/merge", map[string]any{"Do": "merge"})
		return err
	}
	eventually(t, time.Minute, "the pull request is merged", merge)
	repo.git("fetch", "--quiet", "origin", "main")
	the.applied(t, namespace, repo.git("rev-parse", "FETCH_HEAD"), 2*time.Minute)
	eventually(t, time.Minute, "all clusters hold what was promised", func(ctx context.Context) error {
		gotWorks, gotObjects := held(ctx, t, namespace)
		if diff := cmp.Diff(works, gotWorks); diff != "" {
			return fmt.Errorf("Works (-promised +made):\n%s", diff)
		}
		if diff := cmp.Diff(objects, gotObjects); diff != "" {
			return fmt.Errorf("members (-promised +have):\n%s", diff)
		}
		return nil
	})
	eventually(t, time.Minute, "the review lets go of what is merged", func(ctx context.Context) error {
		var review gitopsv1alpha1.PullRequestReview
		if err := the.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "src"}, &review); err != nil {
			return err
		}
		if len(review.Status.PullRequests) != 0 {
			return fmt.Errorf("status: %+v", review.Status)
		}
		return nil
	})
}

// promised is what clusters hold, with the difference that the comment says: another image in east.
func promised(t *testing.T, namespace string) (works, objects map[string]string) {
	t.Helper()
	works, objects = held(t.Context(), t, namespace)
	for _, of := range []map[string]string{works, objects} {
		if len(of) != len(memberNames) || !strings.Contains(of["east"], "nginx:1.29") {
			t.Fatalf("clusters hold %q", of)
		}
		of["east"] = strings.ReplaceAll(of["east"], "nginx:1.29", "nginx:1.30")
	}
	works["east"] = strings.ReplaceAll(works["east"], `\"1.29\"`, `\"1.30\"`) // the annotation that names the override
	return works, objects
}

// held are the bytes of the Work of each cluster, and the fields that each member has.
func held(ctx context.Context, t *testing.T, namespace string) (works, objects map[string]string) {
	t.Helper()
	works, objects = map[string]string{}, map[string]string{}
	for _, name := range memberNames {
		var list workv1alpha1.WorkList
		if err := the.hub.List(ctx, &list, client.InNamespace("karmada-es-"+name)); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			for _, manifest := range list.Items[i].Spec.Workload.Manifests {
				if bytes.Contains(manifest.Raw, []byte(`"kind":"Deployment"`)) && bytes.Contains(manifest.Raw, []byte(`"namespace":"`+namespace+`"`)) {
					works[name] += string(manifest.Raw)
				}
			}
		}
		var web appsv1.Deployment
		if err := the.members[name].Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, &web); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(web.Spec)
		if err != nil {
			t.Fatal(err)
		}
		objects[name] = string(text)
	}
	return works, objects
}

// TestReviewOfAFork: nobody looks at what comes from a fork before somebody who may write has labelled its head, and another head
// takes the label off.
func TestReviewOfAFork(t *testing.T) {
	f := startForge(t)
	repo := f.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(reviewed, namespace, "1.29"))
	first := repo.push("the application")
	address, api := strings.TrimSuffix(repo.url, ".git"), fmt.Sprintf("/api/v1/repos/%s/%s", f.owner, namespace)
	the.follow(t, repo.url, "interval: 1h\nsecretRef: {name: forge}", "suspend: true")
	the.Apply(t, fmt.Sprintf(forgeAccess, namespace, f.token, address))
	the.Kubectl(t, "", "patch", "kustomization", "app", "-n", namespace, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	the.applied(t, namespace, first, 2*time.Minute)
	f.must(t, http.MethodPost, api+"/labels", map[string]any{"name": "safe", "color": "#00aabb"})
	f.must(t, http.MethodPost, "/api/v1/admin/users", map[string]any{"username": "eve", "email": "eve@example.com", "password": "fleet-e2e-password", "must_change_password": false})
	f.must(t, http.MethodPost, api+"/forks?sudo=eve", map[string]any{})
	commit := func(branch string, size int) {
		content := fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new-%d, namespace: %s}\n", size, namespace)
		body := map[string]any{"message": "more", "content": content}
		body[branch] = "next"
		f.must(t, http.MethodPost, fmt.Sprintf("/api/v1/repos/eve/%s/contents/app/new-%d.yaml?sudo=eve", namespace, size), body)
	}
	commit("new_branch", 1)
	f.must(t, http.MethodPost, api+"/pulls?sudo=eve", map[string]any{"base": "main", "head": "eve:next", "title": "From a fork"})
	the.Apply(t, fmt.Sprintf(`
apiVersion: gitops.flotilla.io/v1alpha1
kind: PullRequestReview
metadata: {name: src, namespace: %s}
spec: {sourceRef: {name: src}, providerRef: {name: commits}, interval: 10s, forkLabel: safe}
`, namespace))
	f.ends(t, f.head(t, api), "flotilla/review", "pending", "from a fork: it is reviewed once")
	safe := func() { f.must(t, http.MethodPost, api+"/issues/1/labels", map[string]any{"labels": []string{"safe"}}) }
	safe()
	f.ends(t, f.head(t, api), "flotilla/review", "success", "")
	commit("branch", 2)
	f.ends(t, f.head(t, api), "flotilla/review", "pending", "from a fork: it is reviewed once")
	safe()
	f.ends(t, f.head(t, api), "flotilla/review", "success", "")
}

// head is the commit of pull request 1, once the forge knows the latest one.
func (f *forge) head(t *testing.T, api string) string {
	t.Helper()
	var head string
	eventually(t, time.Minute, "the pull request has the head of its branch", func(ctx context.Context) error {
		var pull struct {
			Head struct{ SHA string }
		}
		var branch struct {
			Commit struct{ ID string }
		}
		out, err := f.call(ctx, http.MethodGet, api+"/pulls/1", nil)
		if err == nil {
			err = json.Unmarshal(out, &pull)
		}
		if err == nil {
			if out, err = f.call(ctx, http.MethodGet, strings.Replace(api, "/"+f.owner+"/", "/eve/", 1)+"/branches/next", nil); err == nil {
				err = json.Unmarshal(out, &branch)
			}
		}
		if head = pull.Head.SHA; err == nil && head != branch.Commit.ID {
			err = fmt.Errorf("the head is %s, and the branch at %s", head, branch.Commit.ID)
		}
		return err
	})
	return head
}
