package fake

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Member is one API server. Use New.
type Member struct {
	token   string
	applied func(namespace, name string, at time.Time)
	store   *store
}

// New returns a member that knows those who show the token. Applied is called with
// each object that was applied, when the answer was ready; it must not block.
func New(token string, applied func(namespace, name string, at time.Time)) *Member {
	return &Member{token: token, applied: applied, store: newStore()}
}

// ID is the UID of the namespace kube-system, which distinguishes members.
func (m *Member) ID() string {
	system, _ := m.store.get(place{resource: "namespaces", name: metav1.NamespaceSystem})
	return string((&unstructured.Unstructured{Object: system.object}).GetUID())
}

// request is one that is about objects.
type request struct {
	kind      kind
	namespace string
	name      string
	selector  labels.Selector
}

func (r request) place() place {
	return place{resource: r.kind.resource, namespace: r.namespace, name: r.name}
}

// ServeHTTP answers as an API server does.
func (m *Member) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Authorization") != "Bearer "+m.token {
		refuse(w, apierrors.NewUnauthorized("the token is not known"))
		return
	}
	if req.URL.Path == "/readyz" || req.URL.Path == "/healthz" {
		_, _ = io.WriteString(w, "ok")
		return
	}
	if found := discovery(req); found != nil {
		answer(w, contentOf(found), found)
		return
	}
	r, err := parse(req)
	if err != nil {
		refuse(w, err)
		return
	}
	switch {
	case req.Method == http.MethodGet && req.URL.Query().Get("watch") == "true":
		m.watch(w, req, r)
	case req.Method == http.MethodGet && r.name == "":
		m.list(w, req, r)
	case req.Method == http.MethodGet:
		m.read(w, r)
	case req.Method == http.MethodPatch:
		m.patch(w, req, r)
	case req.Method == http.MethodDelete && r.name != "":
		m.remove(w, req, r)
	default:
		refuse(w, apierrors.NewMethodNotSupported(schema.GroupResource{Group: r.kind.gvk.Group, Resource: r.kind.resource}, req.Method))
	}
}

// parse reads from the path what a request is about.
func parse(req *http.Request) (request, error) {
	missing := apierrors.NewGenericServerResponse(http.StatusNotFound, req.Method, schema.GroupResource{}, "", "the server could not find the requested resource", 0, true)
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	gv := schema.GroupVersion{}
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		gv.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		gv.Group, gv.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return request{}, missing
	}
	r := request{}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		r.namespace, parts = parts[1], parts[2:]
	}
	var found bool
	if r.kind, found = find(gv, parts[0]); !found || len(parts) > 2 {
		return request{}, missing
	}
	if len(parts) == 2 {
		r.name = parts[1]
	}
	var err error
	if r.selector, err = labels.Parse(req.URL.Query().Get("labelSelector")); err != nil {
		return request{}, apierrors.NewBadRequest(err.Error())
	}
	return r, nil
}

func (m *Member) read(w http.ResponseWriter, r request) {
	found, ok := m.store.get(r.place())
	if !ok {
		refuse(w, apierrors.NewNotFound(schema.GroupResource{Group: r.kind.gvk.Group, Resource: r.kind.resource}, r.name))
		return
	}
	answer(w, jsonContent, json.RawMessage(found.encoded))
}

// patch takes server-side apply; nothing else is sent here.
func (m *Member) patch(w http.ResponseWriter, req *http.Request, r request) {
	if content := req.Header.Get("Content-Type"); content != "application/apply-patch+yaml" || r.name == "" {
		refuse(w, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, req.Method, schema.GroupResource{}, "", "the body is no apply patch: "+content, 0, true))
		return
	}
	desired, err := body(req)
	if err != nil {
		refuse(w, err)
		return
	}
	became, err := m.store.apply(r.kind, r.place(), desired, req.URL.Query().Get("fieldManager"))
	if err != nil {
		refuse(w, err)
		return
	}
	m.applied(r.namespace, r.name, time.Now())
	answer(w, jsonContent, json.RawMessage(became.encoded))
	if r.kind.gvk.Kind == "Deployment" {
		m.store.report(r.place(), running)
	}
}

func body(req *http.Request) (map[string]any, error) {
	content, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var object map[string]any
	if err := utiljson.Unmarshal(content, &object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if _, ok := object["metadata"].(map[string]any); !ok {
		return nil, apierrors.NewBadRequest("the object has no metadata")
	}
	return object, nil
}

// running is the status of a Deployment all of whose replicas are available.
func running(object map[string]any) map[string]any {
	replicas := wanted(object)
	generation := (&unstructured.Unstructured{Object: object}).GetGeneration()
	return map[string]any{
		"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}},
	}
}

func (m *Member) remove(w http.ResponseWriter, req *http.Request, r request) {
	var options metav1.DeleteOptions
	if err := json.NewDecoder(req.Body).Decode(&options); err != nil && !errors.Is(err, io.EOF) {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	uid := types.UID("")
	if only := options.Preconditions; only != nil && only.UID != nil {
		uid = *only.UID
	}
	if err := m.store.remove(r.kind, r.place(), uid); err != nil {
		refuse(w, err)
		return
	}
	answer(w, jsonContent, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

const jsonContent = "application/json"

// contentOf is the type that a document is sent as.
func contentOf(document any) string {
	if _, ok := document.(apidiscovery.APIGroupDiscoveryList); ok {
		return jsonContent + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	}
	return jsonContent
}

func answer(w http.ResponseWriter, content string, document any) {
	encoded, err := json.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", content)
	_, _ = w.Write(encoded)
}

// refuse answers with an error as API servers write them.
func refuse(w http.ResponseWriter, err error) {
	document := statusOf(err)
	encoded, err := json.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonContent)
	w.WriteHeader(int(document.Code))
	_, _ = w.Write(encoded)
}

func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	document := status.Status()
	document.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return document
}
