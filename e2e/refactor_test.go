package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestACommitThatDropsItsNamespace takes the manifest of a namespace out of a repository, and leaves
// what is in it: nothing goes until the commit itself says so.
func TestACommitThatDropsItsNamespace(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	inner := namespace + "-in"
	repo.write("app/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+inner+"}\n")
	repo.write("app/web.yaml", good(inner))
	repo.write("app/other.yaml", strings.ReplaceAll(good(namespace), "name: web", "name: other"))
	first := repo.push("good")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)

	repo.write("app/namespace.yaml", "")
	bad := repo.push("tidy up")
	message := the.refused(t, "Kustomization", namespace, "PruneBlocked")
	for _, part := range []string{"Namespace/" + inner + " with ", `: "namespace/` + inner + `"`} {
		if !strings.Contains(message, part) {
			t.Errorf("the message does not say %q: %s", part, message)
		}
	}
	repo.reported(t, bad, "failure")
	space := &corev1.Namespace{}
	if err := the.hub.Get(t.Context(), types.NamespacedName{Name: inner}, space); err != nil || space.DeletionTimestamp != nil {
		t.Errorf("the namespace did not stay: %v, %v", err, space.DeletionTimestamp)
	}

	repo.write("app/web.yaml", "")
	last := repo.push("retire the inner shop\n\nFlotilla-Allow-Delete: namespace/" + inner + ", deployment/" + inner + "/web, propagationpolicy/" + inner + "/web")
	the.applied(t, namespace, last, 2*time.Minute)
	eventually(t, time.Minute, "the namespace is gone", func(ctx context.Context) error {
		err := the.hub.Get(ctx, types.NamespacedName{Name: inner}, space)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	repo.reported(t, last, "success")
}

// TestACommitThatMistypesACluster: the cluster that was meant loses the application, and the commit
// says so.
func TestACommitThatMistypesACluster(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", good(namespace))
	first := repo.push("good")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success")

	app, _, _ := strings.Cut(good(namespace), "  placement:")
	repo.write("app/web.yaml", app+"  placement: {clusterAffinity: {clusterNames: [east, wst]}}\n")
	bad := repo.push("narrow")
	repo.reported(t, bad, "failure")
	repo.reported(t, bad, "clusterNames names wst, which does not exist (did you mean west?)")
}
