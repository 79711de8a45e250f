package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/examples"
)

// places are where the example's applications run, with their replicas there.
var places = map[string]map[string]int32{
	"bookshop": {"east": 3, "west": 1}, "bookshop-staging": {"edge": 1}, "payments": {"east": 1},
}

// TestMonorepo runs the example of one repository for a fleet, and tidies it up as teams do: a policy moves to
// another Kustomization, a Kustomization is renamed, a file is split. Nothing is made anew for that.
func TestMonorepo(t *testing.T) {
	t.Parallel()
	files, err := fs.Sub(examples.Files, "monorepo")
	if err != nil {
		t.Fatal(err)
	}
	team := the.repositoryNamed(t, fleet.NameOf(t)+"-team")
	team.write("payments.yaml", string(readFile(t, files, "payments/payments.yaml")))
	team.push("what the team runs")
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.copy(files, ".")
	for _, name := range []string{"infrastructure", "production", "staging", "tenants"} {
		path := "clusters/fleet/" + name + ".yaml"
		repo.write(path, strings.NewReplacer("flux-system", namespace, "name: fleet", "name: src").Replace(repo.read(path)))
	}
	repo.write("tenants/payments/tenant.yaml", strings.ReplaceAll(repo.read("tenants/payments/tenant.yaml"), "http://127.0.0.1:3000/payments.git", team.url))
	first := repo.push("a fleet")
	the.follow(t, repo.url, "", "path: ./clusters/fleet")
	the.applied(t, namespace, first, 2*time.Minute)
	before := the.running(t)
	for place, want := range map[string]string{"east": "EUR", "west": "USD"} {
		var config corev1.ConfigMap
		if err := the.members[place].Get(t.Context(), types.NamespacedName{Namespace: "bookshop", Name: "bookshop"}, &config); err != nil || config.Data["currency"] != want {
			t.Errorf("%s pays in %q, want %s: %v", place, config.Data["currency"], want, err)
		}
	}

	policies := strings.SplitAfterN(repo.read("infrastructure/policies.yaml"), "---\n", 2)
	repo.write("apps/production/policy.yaml", strings.TrimSuffix(policies[0], "---\n"))
	repo.write("apps/production/kustomization.yaml", repo.read("apps/production/kustomization.yaml")+"  - policy.yaml\n")
	repo.write("infrastructure/policies.yaml", policies[1])
	manifests := strings.SplitN(repo.read("apps/base/bookshop.yaml"), "---\n", 3)
	repo.write("apps/base/service.yaml", manifests[1])
	repo.write("apps/base/bookshop.yaml", manifests[0]+"---\n"+manifests[2])
	repo.write("apps/base/kustomization.yaml", repo.read("apps/base/kustomization.yaml")+"  - service.yaml\n")
	repo.write("clusters/fleet/staging.yaml", strings.Replace(repo.read("clusters/fleet/staging.yaml"), "name: staging", "name: try-out", 1))
	second := repo.push("tidy up")
	the.applied(t, namespace, second, 2*time.Minute)
	eventually(t, time.Minute, "each Kustomization has applied the second commit, and the old one is gone", func(ctx context.Context) error {
		for _, name := range []string{"infrastructure", "production", "try-out", "tenants"} {
			var ks kustomizev1.Kustomization
			if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &ks); err != nil {
				return err
			}
			if ready := apimeta.FindStatusCondition(ks.Status.Conditions, "Ready"); ready == nil || ready.Status != "True" || !strings.HasSuffix(ks.Status.LastAppliedRevision, second) {
				return fmt.Errorf("%s has applied %s: %+v", name, ks.Status.LastAppliedRevision, ready)
			}
		}
		err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "staging"}, &kustomizev1.Kustomization{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
	if diff := cmp.Diff(before, the.running(t)); diff != "" {
		t.Errorf("what runs (-before +after):\n%s", diff)
	}
}

// running are the UIDs of the example's Deployments and policies, by place and namespace.
func (w *world) running(t *testing.T) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	get := func(place string, c client.Client, namespace string) *appsv1.Deployment {
		name, _, _ := strings.Cut(namespace, "-")
		var d appsv1.Deployment
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &d); err != nil {
			t.Fatalf("%s in %s: %v", namespace, place, err)
		}
		out[place+"/"+namespace] = d.UID
		return &d
	}
	for namespace, replicas := range places {
		get("hub", w.hub, namespace)
		for place, want := range replicas {
			if d := get(place, w.members[place], namespace); d.Spec.Replicas == nil || *d.Spec.Replicas != want {
				t.Errorf("%s in %s has %v replicas, want %d", namespace, place, d.Spec.Replicas, want)
			}
		}
	}
	return out
}

func readFile(t *testing.T, files fs.FS, name string) []byte {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
