package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// externalFollowed is a Kustomization of an ExternalArtifact, which Flux's command line creates none of.
const externalFollowed = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: %[1]s}
spec:
  interval: 1h
  path: ./app
  prune: true
  sourceRef: {kind: ExternalArtifact, name: src}
`

// TestFluxAndExternalArtifacts follows what another controller has made by the real command line of Flux.
func TestFluxAndExternalArtifacts(t *testing.T) {
	f := flux{t: t, binary: built(t, fluxProgram), namespace: fleet.NameOf(t), cache: t.TempDir()}
	the.Apply(t, fmt.Sprintf(inRegistry, f.namespace))
	t.Cleanup(func() { the.unfollow(t, f.namespace) })
	files := artifact.Files{"app/web.yaml": {Data: fmt.Appendf(nil, byHandApp, f.namespace, "nginx:1.29")}}
	var packed bytes.Buffer
	if err := files.Pack(&packed); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(packed.Bytes()) }))
	t.Cleanup(server.Close)
	const revision = "latest@sha256:"
	digest := artifact.DigestOf(packed.Bytes())
	source := &sourcev1.ExternalArtifact{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "src"},
		Spec:       sourcev1.ExternalArtifactSpec{SourceRef: &meta.NamespacedObjectKindReference{APIVersion: "render.example/v1", Kind: "Render", Name: "app", Namespace: f.namespace}},
	}
	if err := the.hub.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	f.check([]fluxStep{{args: "get sources external -n NAMESPACE", want: []string{`^NAME\s+REVISION\s+SOURCE\s+READY\s+MESSAGE`, `^src\s+Render/NAMESPACE/app`}}})
	source.Status.Artifact = &meta.Artifact{URL: server.URL + "/src.tar.gz", Path: "src.tar.gz", Revision: "latest@" + digest, Digest: digest, LastUpdateTime: metav1.NewTime(time.Now())}
	source.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason, Message: "rendered", LastTransitionTime: metav1.NewTime(time.Now())}}
	if err := the.hub.Status().Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	the.Apply(t, fmt.Sprintf(externalFollowed, f.namespace))
	short := revision + digest[len("sha256:"):][:8]
	f.check([]fluxStep{
		{args: "get sources external -n NAMESPACE", want: []string{`^src\s+` + short + `\s+Render/NAMESPACE/app\s+True\s+rendered`}},
		{args: "get sources all -n NAMESPACE", want: []string{`^externalartifact/src\s+` + short}},
		{args: "reconcile kustomization app -n NAMESPACE", want: []string{`✔ applied revision latest@` + digest}},
		{args: "get kustomizations -n NAMESPACE", want: []string{`^app\s+` + short}},
		{args: "trace deployment web -n NAMESPACE", want: []string{`^Kustomization:\s+app$`, `^ExternalArtifact:\s*src$`, `^Revision:\s+latest@` + digest}},
		{args: "export source external src -n NAMESPACE", want: []string{`^kind: ExternalArtifact$`, `^    kind: Render$`}},
		{args: "delete kustomization app -n NAMESPACE --silent", want: []string{`✔ kustomization deleted`}},
	})
}
