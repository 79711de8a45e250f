package commitstatus

import (
	"context"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// subject is what a status is about.
type subject struct {
	apiVersion, kind, namespace, name, uid string
	// context is its name on the forge where a Provider has no expression, and qualified the one that distinguishes it
	// from that of another namespace.
	context, qualified string
}

// ofKustomization names the status as Flux does, in lower case.
func ofKustomization(ks *kustomizev1.Kustomization, t target) subject {
	first, _, _ := strings.Cut(string(t.provider.UID), "-")
	return subject{
		apiVersion: kustomizev1.GroupVersion.String(), kind: kustomizev1.KustomizationKind, namespace: ks.Namespace, name: ks.Name, uid: string(ks.UID),
		context: strings.ToLower(kustomizev1.KustomizationKind + "/" + ks.Name + "/" + first),
	}
}

// ofSource names the status of all that a namespace applies of a source. Those of another namespace than
// the source's are distinguished.
func ofSource(source origins.Object, namespace string) subject {
	of := origins.Of(source)
	name, qualified := of.Name, namespace+"/"+of.Name
	if namespace != of.Namespace {
		name = qualified
	}
	return subject{
		apiVersion: sourcev1.GroupVersion.String(), kind: of.Kind, namespace: of.Namespace, name: of.Name, uid: string(source.GetUID()),
		context: prefixOf(of.Kind) + name, qualified: prefixOf(of.Kind) + qualified,
	}
}

// prefixOf is how the statuses of sources of a kind begin: a repository, and what is packed of it, may have the same name.
func prefixOf(kind string) string {
	if k, _ := origins.KindOf(kind); kind != sourcev1.GitRepositoryKind {
		return "flotilla/" + k.Word + ":"
	}
	return "flotilla/"
}

// maxContext is the longest context that forges accept, in bytes.
const maxContext = 255

// contextOf names a status on the forge: by the Provider's expression, or as its subject has it.
func contextOf(ctx context.Context, expressions *expression.Compiler, about subject, t target, v verdict) (string, error) {
	text := t.provider.Spec.CommitStatusExpr
	if text == "" {
		return about.context[:min(len(about.context), maxContext)], nil
	}
	expr, err := expressions.Compile(ctx, text, nil, "event", "provider", "alert")
	if err != nil {
		return "", fmt.Errorf("provider %s: spec.commitStatusExpr: %w", t.provider.Name, err)
	}
	vars := map[string]any{"event": about.event(t, v)}
	for name, obj := range map[string]any{"provider": t.provider, "alert": t.alert} {
		if vars[name], err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			return "", fmt.Errorf("read the %s: %w", name, err)
		}
	}
	name, err := expr.Text(ctx, vars, nil)
	switch {
	case err != nil:
		return "", fmt.Errorf("provider %s: spec.commitStatusExpr: %w", t.provider.Name, err)
	case name == "" || len(name) > maxContext:
		return "", fmt.Errorf("provider %s: spec.commitStatusExpr: gives %d characters, want 1 to %d", t.provider.Name, len(name), maxContext)
	default:
		return name, nil
	}
}

// event is the variable of an expression, in the shape that Flux gives it.
func (about subject) event(t target, v verdict) map[string]any {
	severity := "info"
	if v.state == gitopsv1alpha1.CommitFailure || v.state == gitopsv1alpha1.CommitError {
		severity = "error"
	}
	metadata := map[string]any{"revision": t.revision}
	if t.origin != "" {
		metadata["originRevision"] = t.origin
	}
	return map[string]any{
		"involvedObject": map[string]any{
			"apiVersion": about.apiVersion, "kind": about.kind, "namespace": about.namespace, "name": about.name, "uid": about.uid,
		},
		"severity":            severity,
		"message":             v.description,
		"metadata":            metadata,
		"reportingController": "flotilla",
	}
}
