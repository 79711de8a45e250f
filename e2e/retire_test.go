package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestAnApplicationIsRetired with the Kustomization that made its own: first without a word, which is refused with the way
// to allow it, and then with that. Each status of the commit that retires it ends as a success.
func TestAnApplicationIsRetired(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	stays := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stays, namespace: " + namespace + "}\n"
	repo.write("app/stays.yaml", stays)
	repo.write("app/teams.yaml", fmt.Sprintf(childOf, "teams", namespace, ""))
	repo.write("teams/finder.yaml", fmt.Sprintf(childOf, "finder", namespace, ""))
	repo.write("finder/web.yaml", good(namespace))
	first := repo.push("an application")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success")

	repo.git("rm", "--quiet", "-r", "app/teams.yaml", "teams", "finder")
	second := repo.push("retire it")
	message := the.refused(t, "Kustomization", namespace, "PruneBlocked")
	for _, part := range []string{"Kustomization/" + namespace + "/teams", "Flotilla-Allow-Delete: kustomization/" + namespace + "/teams"} {
		if !strings.Contains(message, part) {
			t.Errorf("the refusal does not say %q: %s", part, message)
		}
	}
	repo.reported(t, second, "failure PruneBlocked")

	repo.git("commit", "--quiet", "--allow-empty", "-m", "retire it\n\nFlotilla-Allow-Delete: kustomization/"+namespace+"/teams")
	repo.git("push", "--quiet", "origin", "HEAD:main")
	third := repo.git("rev-parse", "HEAD")
	the.applied(t, namespace, third, 2*time.Minute)
	eventually(t, time.Minute, "the Kustomizations are gone", func(ctx context.Context) error {
		for _, name := range []string{"teams", "finder"} {
			if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &kustomizev1.Kustomization{}); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("%s is there", name), err)
			}
		}
		return nil
	})
	eventually(t, time.Minute, "all statuses are successes", func(context.Context) error {
		note := repo.note(third)
		for _, line := range strings.Split(strings.TrimSpace(note), "\n") {
			if !strings.Contains(line, ": success ") {
				return fmt.Errorf("the note says:\n%s", note)
			}
		}
		return nil
	})
	if note := repo.note(third); !strings.Contains(note, "retired by this commit") {
		t.Errorf("nothing is retired: %s", note)
	}
}
