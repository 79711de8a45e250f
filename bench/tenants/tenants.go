package tenants

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// Fleet is what the tenants share.
type Fleet struct {
	// Connect reaches the control plane by a connection of its own, as an administrator,
	// who makes for tenants what they could make for themselves.
	Connect func() (client.WithWatch, error)
	// Git serves their repositories.
	Git *gitserver.Server
	// Dir is for their work trees.
	Dir string
}

// tenant has a namespace, a repository of the same name, and the rights to edit.
type tenant struct {
	hub  client.WithWatch
	name string
	tree string // where it commits from
	url  string
}

const (
	// branch is what sources follow.
	branch = "main"
	// once is an interval that never ends here: tenants say when to look.
	once = time.Hour
)

// newTenant makes a tenant with those files in its repository.
func newTenant(ctx context.Context, fleet Fleet, name string, files map[string]string) (*tenant, error) {
	hub, err := fleet.Connect()
	if err != nil {
		return nil, fmt.Errorf("connect %s to the control plane: %w", name, err)
	}
	t := &tenant{hub: hub, name: name, url: fleet.Git.URL(name)}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "edit"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: "default"}},
		},
	} {
		if err := t.create(ctx, obj); err != nil {
			return nil, err
		}
	}
	if err := fleet.Git.Create(ctx, name); err != nil {
		return nil, err
	}
	if t.tree, err = os.MkdirTemp(fleet.Dir, "tree-"); err != nil {
		return nil, fmt.Errorf("make a work tree: %w", err)
	}
	if _, err := gitserver.Git(ctx, t.tree, "clone", "--quiet", t.url, "."); err != nil {
		return nil, err
	}
	_, err = t.commit(ctx, files)
	return t, err
}

func (t *tenant) create(ctx context.Context, obj client.Object) error {
	if err := t.hub.Create(ctx, obj); err != nil {
		return fmt.Errorf("make the %T %s/%s: %w", obj, obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

// commit pushes files, by path, and returns the commit.
func (t *tenant) commit(ctx context.Context, files map[string]string) (string, error) {
	for name, content := range files {
		path := filepath.Join(t.tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", fmt.Errorf("make a folder of a work tree: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("write to a work tree: %w", err)
		}
	}
	for _, args := range [][]string{{"add", "."}, {"commit", "--quiet", "-m", "change"}, {"push", "--quiet", "origin", "HEAD:" + branch}} {
		if _, err := gitserver.Git(ctx, t.tree, args...); err != nil {
			return "", err
		}
	}
	return gitserver.Git(ctx, t.tree, "rev-parse", "HEAD")
}

// source has the control plane follow a repository; interval is how often it looks
// by itself.
func (t *tenant) source(ctx context.Context, name, url string, interval time.Duration) error {
	return t.create(ctx, &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: name},
		Spec: sourcev1.GitRepositorySpec{
			URL: url, Interval: metav1.Duration{Duration: interval}, Reference: &sourcev1.GitRepositoryRef{Branch: branch},
		},
	})
}

// kustomization applies a folder of the source that is called like the tenant.
func (t *tenant) kustomization(ctx context.Context, name, path string, interval time.Duration, change func(*kustomizev1.KustomizationSpec)) error {
	ks := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: name},
		Spec: kustomizev1.KustomizationSpec{
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: t.name},
			Path:      path, Prune: true,
			Interval: metav1.Duration{Duration: interval}, RetryInterval: &metav1.Duration{Duration: time.Second},
		},
	}
	if change != nil {
		change(&ks.Spec)
	}
	return t.create(ctx, ks)
}

// touch asks for an object to be looked at now.
func (t *tenant) touch(ctx context.Context, obj client.Object) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, meta.ReconcileRequestAnnotation, time.Now().UnixNano())
	if err := t.hub.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("touch the %T %s/%s: %w", obj, obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}
