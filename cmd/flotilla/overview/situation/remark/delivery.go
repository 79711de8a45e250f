package remark

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// SourceNext returns the next step for a source.
func SourceNext(of origins.Object, ready *metav1.Condition) string {
	at := origins.Of(of)
	kind, _ := origins.KindOf(at.Kind)
	if kind.Given {
		return givenNext(of, at)
	}
	again := "flotilla reconcile source " + kind.Word + " " + at.Name + inNamespace(at.Namespace)
	if ready == nil {
		return "wait a moment; if it stays so, see whether the control plane runs the controller " + strings.ToLower(at.Kind)
	}
	switch ready.Reason {
	case sourcev1.AuthenticationFailedReason:
		return credentialsNext(of, ready.Message, again)
	case sourcev1.URLInvalidReason, "UnsupportedField":
		return "correct its spec: flotilla edit " + strings.ToLower(at.Kind) + " " + at.Name + inNamespace(at.Namespace)
	case "HostKeyNotTrusted":
		return "compare the server's key with what its operator says, and put it into known_hosts"
	case sourcev1.VerificationError:
		if next, missing := missingSigners(of, ready.Message); missing {
			return next
		}
		return verificationNext(of) + ", then: " + again
	case lineage.ReasonRewritten, lineage.ReasonUnknown:
		return "push " + following(of) + ", or take this one: flotilla kubectl annotate " + strings.ToLower(at.Kind) + " " + at.Name + inNamespace(at.Namespace) + " " + gitopsv1alpha1.RollbackProtectionAnnotation + "-"
	case "LimitExceeded":
		return limitNext
	case "AddressNotAllowed":
		return cmp.Or(allowance(ready.Message), "put right what it says, then: "+again)
	default:
		return "put right what it says, then: " + again
	}
}

// following names what is taken of a source that holds back what does not follow.
func following(of origins.Object) string {
	r, isGit := of.(*sourcev1.GitRepository)
	switch {
	case !isGit:
		return "an artifact that is newer"
	case r.Spec.Reference != nil && r.Spec.Reference.SemVer != "" && r.Spec.Reference.Name == "":
		return "a higher version that follows, ask for the versions of one branch in spec.ref.semver, as 1.2.x"
	default:
		return "a commit that follows"
	}
}

// givenNext returns the next step for a source whose artifacts others make.
func givenNext(of origins.Object, at inventory.Source) string {
	message := origins.FactsOf(of).Unverified
	switch {
	case message == "":
		return "see the controller that makes its artifact, as spec.sourceRef names it"
	case allowance(message) != "":
		return allowance(message)
	default:
		return "put right what it says, which is noticed within ten minutes: flotilla describe externalartifact " + at.Name + inNamespace(at.Namespace)
	}
}

// verificationNext returns what to do about a revision, or keys, with which nothing can be verified.
func verificationNext(of origins.Object) string {
	if r, ok := of.(*sourcev1.OCIRepository); ok {
		return artifactNext(r)
	}
	r, ok := of.(*sourcev1.GitRepository)
	if !ok || r.Spec.Verification == nil {
		return "put right what it says"
	}
	secret, refused := r.Spec.Verification.SecretRef.Name, provenance.Refused(r)
	switch {
	case refused.Revision == "": // it is about the Secret
		return "put the public keys whose signatures count into the Secret " + secret + inNamespace(r.Namespace)
	case refused.Kind == provenance.MissingTag:
		return "correct spec.ref or spec.verify.mode: flotilla edit gitrepository " + r.Name + inNamespace(r.Namespace)
	case refused.Kind == provenance.UnsignedTag:
		return "have the tag signed with one of the keys of the Secret " + secret + ", or add the signer's public key there"
	default:
		return "have the commit signed with one of the keys of the Secret " + secret + ", or add the signer's public key there"
	}
}

// artifactNext is verificationNext for an artifact of a registry.
func artifactNext(r *sourcev1.OCIRepository) string {
	verify, correct := r.Spec.Verify, "correct its spec: flotilla edit ocirepository "+r.Name+inNamespace(r.Namespace)
	if verify == nil {
		return "put right what it says"
	}
	refused := provenance.RefusedArtifact(r).Revision != ""
	_, err := provenance.Matchers(verify.MatchOIDCIdentity)
	switch keys, root := verify.SecretRef, verify.TrustedRootSecretRef; {
	case err != nil, keys == nil && (root == nil || len(verify.MatchOIDCIdentity) == 0), keys != nil && (root != nil || len(verify.MatchOIDCIdentity) > 0):
		return correct
	case keys != nil && refused:
		return "have the artifact signed with one of the keys of the Secret " + keys.Name + ", or add the signer's public key there"
	case keys != nil && verify.Provider == provenance.Notation:
		return "put trustpolicy.json and the certificates of who may sign into the Secret " + keys.Name + inNamespace(r.Namespace)
	case keys != nil:
		return "put the public keys whose signatures count into the Secret " + keys.Name + inNamespace(r.Namespace)
	case refused:
		return "have the artifact signed by one of spec.verify.matchOIDCIdentity, or add who signs it there: flotilla edit ocirepository " + r.Name + inNamespace(r.Namespace)
	default:
		return "put the trusted root into trusted_root.json of the Secret " + root.Name + inNamespace(r.Namespace)
	}
}

// allowance returns what an administrator can do about an address, from the end of the message;
// empty if the message does not say.
func allowance(message string) string {
	const begins = "an administrator can allow "
	if at := strings.LastIndex(message, "; "+begins); at >= 0 {
		return excerpt.Line(message[at+len("; "):])
	}
	return ""
}

// limitNext returns the next step for an object that exceeds a limit of its namespace.
const limitNext = "make room in the namespace, which is noticed within a minute, or have an administrator raise serve --namespace-limits"

// KustomizationNext returns the next step for a Kustomization.
func KustomizationNext(ks *kustomizev1.Kustomization, ready *metav1.Condition) string {
	if ready == nil {
		return "wait a moment; if it stays so, see whether the control plane runs the controller kustomization"
	}
	object := ks.Name + inNamespace(ks.Namespace)
	switch ready.Reason {
	case fluxmeta.ArtifactFailedReason:
		return "see its source: flotilla trace kustomization/" + object
	case fluxmeta.DependencyNotReadyReason:
		return DependencyNext(ready.Message)
	case "ApprovalMissing":
		return "see what is awaited: flotilla get pullrequestreviews -A"
	case ClusterSilent:
		return "see to the cluster that is silent (flotilla get clusters); this follows by itself. To go on without it: flotilla annotate kustomization " + object + " kustomize.flotilla.io/max-unreachable=1"
	case "HandingOver":
		return "see the Kustomizations that it names: flotilla get kustomizations -A"
	case fluxmeta.HealthCheckFailedReason, fluxmeta.ProgressingReason:
		if place := inventory.PlaceOf(ks.Status); place != (inventory.Place{}) {
			return "see the objects that it names " + place.String() + ", which is outside of the fleet"
		}
		return "see which objects: flotilla tree kustomization/" + object
	case "PruneBlocked":
		return blockedNext(ks, ready.Message, "put it right and commit")
	case "UnknownCluster":
		return blockedNext(ks, ready.Message, "correct the name and commit, or join the cluster (flotilla get clusters)")
	case "LimitExceeded":
		return limitNext
	case "NotSupported", "InvalidAnnotation":
		return "correct it: flotilla edit kustomization " + object
	case "SharedObject":
		return "see the Kustomizations that it names, and take it out of one: flotilla get kustomizations -A"
	case fluxmeta.BuildFailedReason, "PathNotFound", "EmptyBuild", "DuplicateObject", "InvalidObject", "UnknownKind", "NamespaceNotSet", "ServiceAccountNotFound", "ObjectTooLarge":
		traces := "flotilla trace kustomization/" + object
		if stays := stays(ks); stays != "" {
			return Mend(ks, ready) + "; " + stays + ". " + traces
		}
		return Mend(ks, ready) + "; see " + traces
	case "Forbidden", fluxmeta.PruneFailedReason: // no part of these messages comes from others
		return cmp.Or(excerpt.Line(tenancy.Advice(ready.Message)), "put right what it says, then: flotilla reconcile kustomization "+object)
	default:
		return "put right what it says, then: flotilla reconcile kustomization " + object
	}
}

// blockedNext returns how to correct or to allow what the brake has refused, from the end of the message, which
// may be too long for a screen.
func blockedNext(ks *kustomizev1.Kustomization, message, mend string) string {
	_, allow, found := strings.Cut(message, inventory.AllowPruneAnnotation+": \"")
	allow, _, ended := strings.Cut(allow, "\"")
	if !found || !ended {
		return "commit it again, or allow it as the whole message says: flotilla describe kustomization " + ks.Name + inNamespace(ks.Namespace)
	}
	commit := ""
	if _, names, found := strings.Cut(message, gitopsv1alpha1.AllowDeleteTrailer+": "); found {
		commit = fmt.Sprintf("in a commit by the trailer %q, or by ", gitopsv1alpha1.AllowDeleteTrailer+": "+excerpt.Line(names))
	}
	return fmt.Sprintf("%s, or let it go: %sflotilla annotate kustomization %s --overwrite %s=%q",
		mend, commit, ks.Name+inNamespace(ks.Namespace), inventory.AllowPruneAnnotation, excerpt.Line(allow))
}

// Address returns the address of a source without user and password.
func Address(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return "(not an address)"
	}
	u.User = nil
	return u.String()
}
