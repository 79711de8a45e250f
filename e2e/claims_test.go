package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// withClaim is an application in all clusters whose Deployment uses a claim, which goes along with it as long as propagateDeps
// is on.
func withClaim(namespace string, propagateDeps bool) string {
	const volume = "\n      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
	app := strings.Replace(good(namespace), "\n---", volume+"\n---", 1)
	return strings.Replace(app, "spec:\n  resourceSelectors", fmt.Sprintf("spec:\n  propagateDeps: %t\n  resourceSelectors", propagateDeps), 1) + `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ` + namespace + `}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`
}

// TestACommitThatLeavesAClaimBehind is green and says so, as does its Kustomization, until nothing stays there.
func TestACommitThatLeavesAClaimBehind(t *testing.T) {
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", withClaim(namespace, true))
	first := repo.push("with its data")
	the.follow(t, repo.url, "", "wait: false")
	repo.reported(t, first, "success 3/3 clusters ready")
	eventually(t, time.Minute, "the clusters have the claim", the.inEveryMember(func(ctx context.Context, _ string, member client.Client) error {
		return member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "data"}, &corev1.PersistentVolumeClaim{})
	}))

	repo.write("app/web.yaml", withClaim(namespace, false))
	second := repo.push("without its data")
	repo.reported(t, second, "success 3/3 clusters ready; claim "+namespace+"/data stays in east (and 2 more): flotilla prune --cluster east removes it")
	for _, note := range repo.notes(second) {
		if strings.HasSuffix(note, "success 3/3 clusters ready") {
			t.Errorf("the commit was green, and said nothing of the claim: %q", repo.notes(second))
		}
	}
	eventually(t, time.Minute, "the Kustomization says so", the.readySays(namespace, "; claim "+namespace+"/data stays in east (and 2 more)"))

	for _, name := range memberNames {
		the.Flotilla(t, "prune", "--cluster", name, "--yes")
	}
	eventually(t, time.Minute, "the commit says nothing of it any more", func(context.Context) error {
		if notes := repo.notes(second); len(notes) == 0 || !strings.HasSuffix(notes[len(notes)-1], "success 3/3 clusters ready") {
			return fmt.Errorf("it says %q", notes)
		}
		return nil
	})
	eventually(t, time.Minute, "the Kustomization says nothing of it any more", func(ctx context.Context) error {
		return errors.Join(the.readySays(namespace, second)(ctx), the.readySays(namespace, "!claim")(ctx))
	})
}

// readySays is a check of the message of Ready of the Kustomization "app"; with a ! before it the words must not be there.
func (w *world) readySays(namespace, words string) func(context.Context) error {
	return func(ctx context.Context) error {
		var ks kustomizev1.Kustomization
		if err := w.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "app"}, &ks); err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, "Ready")
		unwanted, not := strings.CutPrefix(words, "!")
		if ready == nil || strings.Contains(ready.Message, unwanted) == not {
			return fmt.Errorf("Ready is %+v, want %q", ready, words)
		}
		return nil
	}
}
