// Package overrides measures a commit that changes many Deployments and, beside them, what differs in each cluster.
//
// In go a control plane, its members and a Git server; out come how long it takes until every member has what the commit
// says, and how often each object was written there.
package overrides

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/bench/worktree"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// Fleet is what is measured.
type Fleet struct {
	Hub     *localfleet.Process
	Client  client.WithWatch
	Members map[string]kubernetes.Interface
	Git     *gitserver.Server
	// Dir is for the work tree.
	Dir string
	// Namespace is where the Deployments are.
	Namespace string
	// Quiet waits until nothing was written for a time, and returns the revision then.
	Quiet func(ctx context.Context, still time.Duration) (int64, error)
}

const (
	name        = "overridden"
	deployments = 1000
	// perFile is how many Deployments are in a file.
	perFile = 100
	still   = 2 * time.Second
	longest = 15 * time.Minute
)

// commits are the repository through one measurement.
type commits struct {
	Fleet
	tree worktree.Tree
}

// Measure has a commit change the image of a thousand Deployments, and an override of them in each member.
func Measure(ctx context.Context, f Fleet, r *results.Report) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	tree, err := worktree.New(ctx, f.Git, name, f.Dir)
	if err != nil {
		return err
	}
	c := commits{f, tree}
	if _, err := tree.Commit(ctx, c.files(1)); err != nil {
		return err
	}
	if err := c.follow(ctx); err != nil {
		return err
	}
	first, err := c.everywhere(ctx, 1)
	if err != nil {
		return err
	}
	before, err := c.Quiet(ctx, still)
	if err != nil {
		return err
	}
	spent, err := usage.CPUSeconds(c.Hub.PID())
	if err != nil {
		return err
	}
	if _, err := tree.Commit(ctx, c.files(2)); err != nil {
		return err
	}
	began := time.Now()
	if err := tree.Touch(ctx, c.Client); err != nil {
		return err
	}
	if _, err := c.everywhere(ctx, 2); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := c.Quiet(ctx, still)
	if err != nil {
		return err
	}
	last, err := c.everywhere(ctx, 2) // what came after the change, too
	if err != nil {
		return err
	}
	cpu, err := usage.CPUSeconds(c.Hub.PID())
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d × %d, image and override by one commit: ", deployments, len(c.Members))
	r.Note("overrides", what+"in all members after", took.Seconds(), "s")
	r.AtMost("overrides", what+"writes to each object in a member, at most", float64(most(first, last)), "writes", 1)
	r.Note("overrides", what+"writes of the control plane, each", float64(after-before)/deployments, "writes")
	r.Note("overrides", what+"CPU time of the control plane", cpu-spent, "s")
	return nil
}

// most is how often the specification of that Deployment was written that was written most often.
func most(before, after map[string]int64) int64 {
	var out int64
	for deployment, generation := range after {
		out = max(out, generation-before[deployment])
	}
	return out
}

// image is what Deployments run by a revision, and label what the override for a member adds to them.
func image(revision int) string { return fmt.Sprintf("nginx:1.%d", revision) }

func label(revision int, member string) string { return fmt.Sprintf("r%d-%s", revision, member) }

// files are those of a revision: the Deployments, which have no pods, a policy, and an override for each member.
func (c commits) files(revision int) map[string]string {
	out := map[string]string{"policy.yaml": fmt.Sprintf(`apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [%[3]s]}}
`, name, c.Namespace, strings.Join(c.names(), ", "))}
	for _, member := range c.names() {
		out["override-"+member+".yaml"] = fmt.Sprintf(`apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: %[1]s-%[3]s, namespace: %[2]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules:
    - targetCluster: {clusterNames: [%[3]s]}
      overriders:
        plaintext: [{path: /spec/template/metadata/labels/in, operator: add, value: %[4]s}]
`, name, c.Namespace, member, label(revision, member))
	}
	var manifests strings.Builder
	for n := range deployments {
		_, _ = fmt.Fprintf(&manifests, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s-%04[2]d, namespace: %[3]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s-%04[2]d}}
  template:
    metadata: {labels: {app: %[1]s-%04[2]d}}
    spec: {containers: [{name: web, image: "%[4]s"}]}
`, name, n, c.Namespace, image(revision))
		if (n+1)%perFile == 0 {
			out[fmt.Sprintf("deployments-%04d.yaml", n)] = manifests.String()
			manifests.Reset()
		}
	}
	return out
}

func (c commits) names() []string { return slices.Sorted(maps.Keys(c.Members)) }

// follow makes the source, and the Kustomization of all that is in it.
func (c commits) follow(ctx context.Context) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: worktree.Namespace}}
	if err := c.Client.Create(ctx, space); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	if err := c.Client.Create(ctx, c.tree.Source()); err != nil {
		return fmt.Errorf("make the source: %w", err)
	}
	err := c.Client.Create(ctx, &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: worktree.Namespace, Name: name},
		Spec: kustomizev1.KustomizationSpec{
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: name}, Prune: true, Interval: metav1.Duration{Duration: time.Hour},
		},
	})
	if err != nil {
		return fmt.Errorf("make the Kustomization: %w", err)
	}
	return nil
}

// everywhere waits until each member has all Deployments of a revision, and returns their generations, which count how often
// their specifications were written.
func (c commits) everywhere(ctx context.Context, revision int) (map[string]int64, error) {
	out := map[string]int64{}
	for member, edge := range c.Members {
		err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list, err := edge.AppsV1().Deployments(c.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return false, fmt.Errorf("list Deployments: %w", err)
			}
			fine := 0
			for i := range list.Items {
				d := &list.Items[i]
				out[member+"/"+d.Name] = d.Generation
				if stands(d, revision, member) {
					fine++
				}
			}
			return fine == deployments, nil
		})
		if err != nil {
			return nil, fmt.Errorf("wait for revision %d in %s: %w", revision, member, err)
		}
	}
	return out, nil
}

func stands(d *appsv1.Deployment, revision int, member string) bool {
	return d.Spec.Template.Labels["in"] == label(revision, member) && d.Spec.Template.Spec.Containers[0].Image == image(revision)
}
