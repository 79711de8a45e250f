package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const manyApps = 40

// many is a namespace full of small Deployments with one policy for all.
func many(namespace, image string) string {
	var b strings.Builder
	for i := range manyApps {
		fmt.Fprintf(&b, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d, namespace: %[2]s, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec:
      containers: [{name: web, image: %[3]q}]
---
`, i, namespace, image)
	}
	fmt.Fprintf(&b, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {}
`, namespace)
	return b.String()
}

// TestKilledControlPlane crashes the control plane in the middle of its work,
// twice. After the restart it ends where it would have without: every cluster
// has all Deployments of the last commit, made once.
func TestKilledControlPlane(t *testing.T) {
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", many(namespace, "nginx:1.29"))
	first := repo.push("first")
	the.follow(t, repo.url, "", "")

	eventually(t, time.Minute, "some Deployments have arrived", func(ctx context.Context) error {
		return someIn(ctx, the.members["east"], namespace, "nginx:1.29")
	})
	the.crash(t)
	the.applied(t, namespace, first, 3*time.Minute)
	uids := the.deployments(t, namespace, "nginx:1.29")

	repo.write("app/web.yaml", many(namespace, "nginx:1.30"))
	second := repo.push("second")
	eventually(t, time.Minute, "some Deployments are new", func(ctx context.Context) error {
		return someIn(ctx, the.members["west"], namespace, "nginx:1.30")
	})
	the.crash(t)
	the.applied(t, namespace, second, 3*time.Minute)
	for key, uid := range the.deployments(t, namespace, "nginx:1.30") {
		if uids[key] != uid {
			t.Errorf("Deployment %s was made anew", key)
		}
	}
}

// crash kills the control plane and starts it again on the same folder.
func (w *world) crash(t *testing.T) {
	t.Helper()
	if err := w.Hub.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := w.Hub.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), slack*time.Minute)
	defer cancel()
	if err := w.Hub.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// someIn is nil once a namespace of a member has a Deployment with the image.
func someIn(ctx context.Context, member client.Client, namespace, image string) error {
	var list appsv1.DeploymentList
	if err := member.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, d := range list.Items {
		if d.Spec.Template.Spec.Containers[0].Image == image {
			return nil
		}
	}
	return fmt.Errorf("none of %d", len(list.Items))
}

// deployments checks that every member has all Deployments with the image, and
// returns their UIDs.
func (w *world) deployments(t *testing.T, namespace, image string) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for name, member := range w.members {
		var list appsv1.DeploymentList
		if err := member.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != manyApps {
			t.Errorf("%s has %d Deployments, want %d", name, len(list.Items), manyApps)
		}
		for _, d := range list.Items {
			if got := d.Spec.Template.Spec.Containers[0].Image; got != image {
				t.Errorf("%s: Deployment %s runs %s, want %s", name, d.Name, got, image)
			}
			uids[name+"/"+d.Name] = string(d.UID)
		}
	}
	return uids
}

// TestPausedMember freezes one member: the others get the change at once, and
// it gets it when it is back.
func TestPausedMember(t *testing.T) {
	namespace := fleet.NameOf(t)
	the.Apply(t, fmt.Sprintf(byHand, namespace, "east, edge, west"))
	at := func(name, image string) func(context.Context) error {
		return func(ctx context.Context) error {
			return fleet.Deployed(namespace, "web", image, map[string]int32{"east": 2, "edge": 1, "west": 1}[name])(ctx, name, the.members[name])
		}
	}
	eventually(t, time.Minute, "east is ready", at("east", "nginx:1.29"))
	eventually(t, time.Minute, "west is ready", at("west", "nginx:1.29"))

	resume := the.freeze(t, "west")
	the.Apply(t, strings.ReplaceAll(fmt.Sprintf(byHand, namespace, "east, edge, west"), `"nginx:1.29"`, `"nginx:1.30"`))
	// Who waited for west would do so for 30 s, which is when a request is given up.
	the.Before(t, 25*time.Second, "east has the change although west hangs", at("east", "nginx:1.30"))
	resume()
	eventually(t, time.Minute, "west has caught up", at("west", "nginx:1.30"))
}

// freeze stops a member until the function that it returns is called, or the test ends.
func (w *world) freeze(t *testing.T, name string) (resume func()) {
	t.Helper()
	if err := w.Members[name].Pause(); err != nil {
		t.Fatal(err)
	}
	resume = sync.OnceFunc(func() {
		if err := w.Members[name].Resume(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(resume)
	return resume
}
