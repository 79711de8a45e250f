package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// unpulled has west run an image that nobody can pull.
const unpulled = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: west, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
    - targetCluster: {clusterNames: [west]}
      overriders: {imageOverrider: [{component: Registry, operator: add, value: fake}]}
`

// TestACommitSaysWhyNothingStarts: one cluster cannot pull the image, and the version before serves there meanwhile. The commit
// says so, and nothing of it once that was put right.
func TestACommitSaysWhyNothingStarts(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", good(namespace))
	the.follow(t, repo.url, "", "wait: false")
	first := repo.push("it runs")
	repo.reported(t, first, "success")

	repo.write("app/override.yaml", fmt.Sprintf(unpulled, namespace))
	second := repo.push("another registry in the west")
	eventually(t, 2*time.Minute, "the commit says why", func(context.Context) error {
		if note := repo.note(second); !strings.Contains(note, "west waits for Deployment "+namespace+"/web") || !strings.Contains(note, "ErrImagePull") {
			return fmt.Errorf("its note is %q", note)
		}
		return nil
	})
	t.Log(repo.note(second))
	if tree := the.Flotilla(t, "tree", "ks", "app", "-n", namespace); !strings.Contains(tree, "ErrImagePull") {
		t.Errorf("the tree does not say why:\n%s", tree)
	}

	repo.write("app/override.yaml", "")
	third := repo.push("as before")
	repo.reported(t, third, "success")
	if note := repo.note(third); strings.Contains(note, "ErrImagePull") {
		t.Errorf("although it runs: %q", note)
	}
}

// TestAKustomizationThatWaitsSaysWhyNothingStarts: when its time is over.
func TestAKustomizationThatWaitsSaysWhyNothingStarts(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", strings.ReplaceAll(good(namespace), "nginx:1.29", "fake/nginx:1.29"))
	commit := repo.push("an image that is nowhere")
	the.follow(t, repo.url, "", "timeout: 45s")
	eventually(t, 2*time.Minute, "it says why", func(ctx context.Context) error {
		var ks kustomizev1.Kustomization
		if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "app"}, &ks); err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, "Ready")
		if ready == nil || ready.Reason != "HealthCheckFailed" || !strings.Contains(ready.Message, "ErrImagePull") {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
	repo.reported(t, commit, "ErrImagePull")
}
