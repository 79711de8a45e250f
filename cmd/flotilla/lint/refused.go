package lint

import (
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/annotation"
	"github.com/flotilla-io/flotilla/policies/unserved"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/sources/clouds"
)

// refused reports what the server accepts of a kind of Flux's and the control plane then refuses, in the words of its
// condition. The fields are those of an object that its schema has nothing against.
func refused(l *linter, o *object, fields map[string]any) {
	read := func(into any) bool {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into) == nil // the schema is the same
	}
	var git sourcev1.GitRepository
	var oci sourcev1.OCIRepository
	var bucket sourcev1.Bucket
	var ks kustomizev1.Kustomization
	switch {
	case o.gvk == sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind) && read(&git):
		field, why := unserved.GitRepository(git.Spec)
		refuse(l, o, field, why)
		refuse(l, o, "spec.provider", unserved.AppWithoutSecret(git.Spec))
		if err := annotation.FaultOf(&git); err != nil {
			refuse(l, o, "metadata.annotations", err.Error())
		}
	case o.gvk == sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind) && read(&oci):
		verified(l, o, oci.Spec.Verify)
		if err := annotation.OfRollback(oci.Annotations); err != nil {
			refuse(l, o, "metadata.annotations", err.Error())
		}
		if not, instead := unserved.Provider(oci.Spec); not {
			refuse(l, o, "spec.provider", "is not supported yet: "+instead)
		}
	case o.gvk == sourcev1.GroupVersion.WithKind(sourcev1.BucketKind) && read(&bucket):
		field, why := unserved.Bucket(bucket.Spec, clouds.Built)
		refuse(l, o, field, why)
	case o.gvk == kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind) && read(&ks):
		if field, instead := kustomizations.Unsupported(ks.Spec); field != "" {
			path, value, _ := strings.Cut(field, " ")
			refuse(l, o, path, strings.TrimSpace(value+" is not supported yet: "+instead))
		}
		if _, err := health.MaxUnreachableOf(&ks); err != nil {
			refuse(l, o, "metadata.annotations", err.Error())
		}
		if err := builder.CheckAnnotations(&ks); err != nil {
			refuse(l, o, "metadata.annotations", err.Error())
		}
	}
}

// refuse reports a sentence about a field, which may begin with it; an empty one is none.
func refuse(l *linter, o *object, field, why string) {
	if why != "" {
		l.add(o, Error, field, strings.TrimPrefix(why, field+" "))
	}
}
