package lint

import (
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/annotation"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/policies/unserved"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/sources/azureblob"
	"github.com/flotilla-io/flotilla/sources/clouds"
	registry "github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/s3"
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
		field, why := unserved.GitRepository(git.Spec, clouds.Built)
		refuse(l, o, field, why)
		refuse(l, o, "spec.provider", unserved.AppWithoutSecret(git.Spec))
		field, why = unserved.Reference(git.Spec.Reference)
		refuse(l, o, field, why)
		refuse(l, o, "spec.verify.mode", provenance.TaglessRef(git.Spec))
		if err := annotation.FaultOf(&git); err != nil {
			refuse(l, o, "metadata.annotations", err.Error())
		}
	case o.gvk == sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind) && read(&oci):
		verified(l, o, oci.Spec.Verify)
		if err := annotation.OfRollback(oci.Annotations); err != nil {
			refuse(l, o, "metadata.annotations", err.Error())
		}
		field, why := unserved.OCIRepository(oci.Spec, clouds.Built)
		refuse(l, o, field, why)
		_, _, err := registry.Place(oci.Spec.URL)
		misplaced(l, o, err, registry.ErrURL)
		if ref := oci.Spec.Reference; ref != nil {
			misplaced(l, o, registry.Ref{Tag: ref.Tag, SemVer: ref.SemVer, SemVerFilter: ref.SemverFilter, Digest: ref.Digest}.Check(), registry.ErrRef)
		}
	case o.gvk == sourcev1.GroupVersion.WithKind(sourcev1.BucketKind) && read(&bucket):
		field, why := unserved.Bucket(bucket.Spec, clouds.Built)
		refuse(l, o, field, why)
		if field == "" {
			misplaced(l, o, checkPlace(bucket.Spec), s3.ErrPlace)
		}
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

// checkPlace returns an error for where no bucket can be.
func checkPlace(spec sourcev1.BucketSpec) error {
	place := s3.Place{Endpoint: spec.Endpoint, Bucket: spec.BucketName, Region: spec.Region, Insecure: spec.Insecure}
	switch spec.Provider {
	case sourcev1.BucketProviderAzure:
		return azureblob.Place{Endpoint: spec.Endpoint, Container: spec.BucketName}.Check()
	case sourcev1.BucketProviderGoogle:
		return place.CheckGoogle()
	default:
		return place.Check()
	}
}

// misplaced reports where no source, or nothing of it, can be: an error of this kind, which begins with the field.
func misplaced(l *linter, o *object, err, kind error) {
	if err != nil {
		why := strings.TrimPrefix(err.Error(), kind.Error()+": ")
		field, _, _ := strings.Cut(why, " ")
		refuse(l, o, field, why)
	}
}

// refuse reports a sentence about a field, which may begin with it; an empty one is none.
func refuse(l *linter, o *object, field, why string) {
	if why != "" {
		l.add(o, Error, field, strings.TrimPrefix(why, field+" "))
	}
}
