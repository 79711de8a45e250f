package origins_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

var key = client.ObjectKey{Namespace: "shop", Name: "app"}

// TestEachKindIsRead checks that a source of each kind is read by its kind's name, and known by it afterwards.
func TestEachKindIsRead(t *testing.T) {
	for _, k := range origins.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			obj := k.New()
			obj.SetNamespace(key.Namespace)
			obj.SetName(key.Name)
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(obj).Build()
			want := inventory.Source{Kind: k.Name, ObjectKey: key}
			got, err := origins.Read(t.Context(), hub, want)
			if err != nil {
				t.Fatal(err)
			}
			if origins.Of(got) != want {
				t.Errorf("it is %v, want %v", origins.Of(got), want)
			}
			if _, err := origins.Read(t.Context(), hub, inventory.Source{Kind: k.Name, ObjectKey: client.ObjectKey{Namespace: "shop", Name: "gone"}}); !apierrors.IsNotFound(err) {
				t.Errorf("one that is not there: %v", err)
			}
			list := k.List()
			if err := hub.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestOtherKinds checks that what is no source, or of a kind that is not followed, is said to be so.
func TestOtherKinds(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	if _, err := origins.Read(t.Context(), hub, inventory.Source{Kind: "HelmChart", ObjectKey: key}); !errors.Is(err, origins.ErrKind) {
		t.Errorf("Read = %v, want %v", err, origins.ErrKind)
	}
	none := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if got := origins.Of(none); got != (inventory.Source{}) {
		t.Errorf("a ConfigMap is the source %v", got)
	}
	if diff := cmp.Diff(origins.Facts{}, origins.FactsOf(none)); diff != "" {
		t.Errorf("facts about a ConfigMap:\n%s", diff)
	}
}

func TestFacts(t *testing.T) {
	verify, cosign := &sourcev1.GitRepositoryVerification{}, &sourcev1.OCIRepositoryVerification{Provider: "cosign"}
	artifact := &meta.Artifact{Revision: "main@sha1:1"}
	external := &meta.Artifact{Revision: "main@sha1:1", Digest: "sha256:1", URL: "https://files.test/a"}
	for name, tc := range map[string]struct {
		of   origins.Object
		want origins.Facts
	}{
		"a GitRepository": {
			&sourcev1.GitRepository{
				Spec:   sourcev1.GitRepositorySpec{URL: "https://git.test/app", Suspend: true, Interval: metav1.Duration{Duration: time.Minute}},
				Status: sourcev1.GitRepositoryStatus{ObservedGeneration: 3, Artifact: artifact, ReconcileRequestStatus: meta.ReconcileRequestStatus{LastHandledReconcileAt: "now"}},
			},
			origins.Facts{URL: "https://git.test/app", Reference: "branch master", Suspended: true, Handled: "now", Observed: 3},
		},
		"a GitRepository whose commits nobody has verified": {
			&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Spec: sourcev1.GitRepositorySpec{Verification: verify, Reference: &sourcev1.GitRepositoryRef{Branch: "main", Tag: "v1"}}, Status: sourcev1.GitRepositoryStatus{Artifact: artifact}},
			origins.Facts{Reference: "tag v1", Verify: provenance.Demand{Git: verify}, Unverified: "the artifact of main@sha1:1 is not verified as spec.verify of GitRepository shop/app asks (HEAD)"},
		},
		"an OCIRepository": {
			&sourcev1.OCIRepository{
				Spec:   sourcev1.OCIRepositorySpec{URL: "oci://registry.test/app", Suspend: true},
				Status: sourcev1.OCIRepositoryStatus{ObservedGeneration: 3, Artifact: artifact, ReconcileRequestStatus: meta.ReconcileRequestStatus{LastHandledReconcileAt: "now"}},
			},
			origins.Facts{URL: "oci://registry.test/app", Reference: "tag latest", Suspended: true, Handled: "now", Observed: 3},
		},
		"an OCIRepository whose artifact nobody has verified": {
			&sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Spec: sourcev1.OCIRepositorySpec{Verify: cosign}, Status: sourcev1.OCIRepositoryStatus{Artifact: artifact}},
			origins.Facts{Reference: "tag latest", Verify: provenance.Demand{OCI: cosign}, Unverified: "the artifact of main@sha1:1 is not verified as spec.verify of OCIRepository shop/app asks"},
		},
		"an OCIRepository of versions": {
			&sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{Reference: &sourcev1.OCIRepositoryRef{Tag: "main", SemVer: "1.x", SemverFilter: "-a$"}}, Status: sourcev1.OCIRepositoryStatus{Artifact: artifact}},
			origins.Facts{Reference: "versions 1.x that match -a$"},
		},
		"a Bucket": {
			&sourcev1.Bucket{
				Spec:   sourcev1.BucketSpec{Endpoint: "s3.test:9000", BucketName: "fleet", Suspend: true},
				Status: sourcev1.BucketStatus{ObservedGeneration: 3, Artifact: artifact, ReconcileRequestStatus: meta.ReconcileRequestStatus{LastHandledReconcileAt: "now"}},
			},
			origins.Facts{URL: "https://s3.test:9000/fleet", Reference: "all objects", Suspended: true, Handled: "now", Observed: 3},
		},
		"a part of a Bucket": {
			&sourcev1.Bucket{Spec: sourcev1.BucketSpec{Endpoint: "s3.test/", BucketName: "fleet", Insecure: true, Prefix: "apps/"}, Status: sourcev1.BucketStatus{Artifact: artifact}},
			origins.Facts{URL: "http://s3.test/fleet", Reference: "prefix apps/"},
		},
		"an ExternalArtifact that is in the store": {
			&sourcev1.ExternalArtifact{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Generation: 2, Annotations: map[string]string{gitopsv1alpha1.FetchedAnnotation: "sha256:1"}},
				Spec:       sourcev1.ExternalArtifactSpec{SourceRef: &meta.NamespacedObjectKindReference{APIVersion: "x.io/v1", Kind: "ArtifactGenerator", Name: "all"}},
				Status:     sourcev1.ExternalArtifactStatus{Artifact: external},
			},
			origins.Facts{URL: "https://files.test/a", Reference: "made by ArtifactGenerator shop/all (x.io/v1)", Observed: 2},
		},
		"an ExternalArtifact of which an older one is in the store": {
			&sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Annotations: map[string]string{gitopsv1alpha1.FetchedAnnotation: "sha256:0: gone"}}, Status: sourcev1.ExternalArtifactStatus{Artifact: external}},
			origins.Facts{URL: "https://files.test/a", Fetching: true, Unverified: "the artifact of main@sha1:1 of ExternalArtifact shop/app is being fetched"},
		},
		"an ExternalArtifact that is not fetched": {
			&sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Annotations: map[string]string{gitopsv1alpha1.FetchedAnnotation: "sha256:1: not found (HTTP 404)"}}, Status: sourcev1.ExternalArtifactStatus{Artifact: external}},
			origins.Facts{URL: "https://files.test/a", Unverified: "the artifact of main@sha1:1 of ExternalArtifact shop/app was not fetched: not found (HTTP 404)"},
		},
		"a GitRepository whose history was rewritten": {
			&sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Artifact: &meta.Artifact{Revision: "main@sha1:1", Metadata: map[string]string{gitopsv1alpha1.HistoryKey: "it was\nrewritten"}}}},
			origins.Facts{Reference: "branch master", History: "it was rewritten"},
		},
		"an OCIRepository of a digest": {
			&sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{Reference: &sourcev1.OCIRepositoryRef{Digest: "sha256:1", SemVer: "1.x"}}, Status: sourcev1.OCIRepositoryStatus{Artifact: artifact}},
			origins.Facts{Reference: "digest sha256:1"},
		},
	} {
		if diff := cmp.Diff(tc.want, origins.FactsOf(tc.of)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := origins.Revision(tc.of); got != artifact.Revision {
			t.Errorf("%s: its revision is %q, want %q", name, got, artifact.Revision)
		}
	}
	if got := origins.Revision(&sourcev1.GitRepository{}); got != "" {
		t.Errorf("without an artifact the revision is %q", got)
	}
}

// TestWhatOthersMakeIsReady: who makes an artifact need not say that it is ready, and may say that it is not.
func TestWhatOthersMakeIsReady(t *testing.T) {
	artifact := &meta.Artifact{Revision: "v1@sha256:1"}
	says := func(kind string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: "Said"}}
	}
	for name, tc := range map[string]struct {
		artifact *meta.Artifact
		says     []metav1.Condition
		want     metav1.ConditionStatus // of the condition Ready; empty for none
	}{
		"there is an artifact, and nothing is said":     {artifact, nil, metav1.ConditionTrue},
		"there is an artifact, and other things said":   {artifact, says("Healthy", metav1.ConditionTrue), metav1.ConditionTrue},
		"there is an artifact, and it is said to fail":  {artifact, says(meta.ReadyCondition, metav1.ConditionFalse), metav1.ConditionFalse},
		"there is an artifact, and it is said to stall": {artifact, says(meta.StalledCondition, metav1.ConditionTrue), metav1.ConditionFalse},
		"there is no artifact, and nothing is said":     {},
	} {
		t.Run(name, func(t *testing.T) {
			of := &sourcev1.ExternalArtifact{Status: sourcev1.ExternalArtifactStatus{Artifact: tc.artifact, Conditions: tc.says}}
			var got metav1.ConditionStatus
			if ready := apimeta.FindStatusCondition(origins.Conditions(of), meta.ReadyCondition); ready != nil {
				got = ready.Status
			}
			if got != tc.want {
				t.Errorf("Ready is %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.says, of.Status.Conditions); diff != "" {
				t.Errorf("its own conditions changed (-want +got):\n%s", diff)
			}
		})
	}
	fetched := &sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Artifact: artifact}}
	if got := origins.Conditions(fetched); got != nil {
		t.Errorf("of what is fetched here, nothing is said but its own conditions: %v", got)
	}
}
