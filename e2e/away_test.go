package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestACommitWhileAClusterIsAway removes a workload: the clusters that answer lose it, and the commit is not done until
// the last one has. It is not parallel, as it freezes a member.
func TestACommitWhileAClusterIsAway(t *testing.T) {
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", good(namespace))
	repo.write("app/other.yaml", strings.ReplaceAll(good(namespace), "name: web", "name: other"))
	first := repo.push("two")
	the.follow(t, repo.url, "", "wait: false")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success")
	before := the.incarnations(t, namespace, "web")

	resume := the.freeze(t, "west")
	repo.write("app/other.yaml", "")
	second := repo.push("one")
	the.applied(t, namespace, second, 2*time.Minute)
	eventually(t, time.Minute, "those that answer have lost it", func(ctx context.Context) error {
		return the.deploymentsAre(ctx, namespace, map[string]string{"east": "web", "edge": "web"})
	})
	repo.reported(t, second, "pending")
	repo.reported(t, second, "west unreachable")
	resume()
	eventually(t, 2*time.Minute, "it is gone everywhere", func(ctx context.Context) error {
		return the.deploymentsAre(ctx, namespace, map[string]string{"east": "web", "edge": "web", "west": "web", "hub": "web"})
	})
	repo.reported(t, second, "success")
	for _, note := range repo.notes(second)[:len(repo.notes(second))-1] {
		if strings.Contains(note, "success") {
			t.Errorf("the commit was green before it was done: %q", repo.notes(second))
		}
	}
	if diff := cmp.Diff(before, the.incarnations(t, namespace, "web")); diff != "" {
		t.Errorf("the other Deployment (-before +after):\n%s", diff)
	}
}

// TestAnObjectInTwoKustomizations is refused on the one that comes later, by name, and stays as it is.
func TestAnObjectInTwoKustomizations(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twin, namespace: " + namespace + "}\n"
	repo.write("app/web.yaml", good(namespace))
	repo.write("twin/config.yaml", config)
	first := repo.push("one each")
	the.follow(t, repo.url, "", "")
	the.Apply(t, fmt.Sprintf(childOf, "twin", namespace, ""))
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success")
	twin := func(ctx context.Context, revision, reason string) error {
		var ks kustomizev1.Kustomization
		if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "twin"}, &ks); err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, "Ready")
		if ready == nil || ready.Reason != reason || !strings.HasSuffix(ks.Status.LastAttemptedRevision, revision) {
			return fmt.Errorf("attempted %s: %+v", ks.Status.LastAttemptedRevision, ready)
		}
		if want := "Deployment/" + namespace + "/web stands in Kustomization " + namespace + "/app and in " + namespace + "/twin"; reason == "SharedObject" && !strings.Contains(ready.Message, want) {
			return fmt.Errorf("the message does not say %q: %s", want, ready.Message)
		}
		return nil
	}
	eventually(t, time.Minute, "twin is ready", func(ctx context.Context) error { return twin(ctx, first, "ReconciliationSucceeded") })
	before := the.incarnations(t, namespace, "web")
	works := the.watchWorks(t, namespace, "east", "west", "edge")

	deployment, _, _ := strings.Cut(good(namespace), "---\napiVersion: policy")
	repo.write("twin/web.yaml", strings.ReplaceAll(deployment, "nginx:1.29", "nginx:1.30"))
	second := repo.push("twice")
	eventually(t, time.Minute, "twin is refused", func(ctx context.Context) error { return twin(ctx, second, "SharedObject") })
	repo.reported(t, second, "failure")
	if note := repo.note(second); !strings.Contains(note, "Deployment/"+namespace+"/web") {
		t.Errorf("the commit does not name the object: %q", note)
	}
	if diff := cmp.Diff(before, the.incarnations(t, namespace, "web")); diff != "" {
		t.Errorf("the Deployment (-before +after):\n%s", diff)
	}
	for where, versions := range works() {
		if len(versions) > 1 {
			t.Errorf("the Work %s was written: %v", where, versions)
		}
	}

	repo.write("twin/web.yaml", "")
	third := repo.push("once")
	eventually(t, time.Minute, "twin is ready again", func(ctx context.Context) error {
		return errors.Join(twin(ctx, third, "ReconciliationSucceeded"), the.deploymentsAre(ctx, namespace, map[string]string{"hub": "web", "east": "web"}))
	})
	repo.reported(t, third, "success")
}
