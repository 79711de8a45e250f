package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// list answers with the objects of a kind, in a namespace or in all.
func (m *Member) list(w http.ResponseWriter, req *http.Request, r request) {
	found, version := m.store.list(r.kind.resource, r.namespace, r.selector)
	items := make([]json.RawMessage, len(found))
	for i := range found {
		items[i] = found[i].encoded
	}
	shown := shownAs(req, r.kind)
	answer(w, jsonContent, map[string]any{
		"kind": shown.Kind + "List", "apiVersion": shown.APIVersion,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(version, 10)}, "items": items,
	})
}

// shownAs returns the type that a reader wants objects as: their own, or
// metadata alone. Kinds that are asked for in that form have no objects here.
func shownAs(req *http.Request, k kind) metav1.TypeMeta {
	if strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
	}
	apiVersion, kind := k.gvk.ToAPIVersionAndKind()
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
}

// watch shows the changes of a kind until the reader leaves: after a version,
// or after all that is there when the reader asks for that.
func (m *Member) watch(w http.ResponseWriter, req *http.Request, r request) {
	initial, version, err := m.begin(req, r)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", jsonContent)
	stream := &stream{out: w, flush: http.NewResponseController(w).Flush}
	for _, e := range initial {
		stream.send(e.kind, e.object)
	}
	for {
		changes, changed, ok := m.store.since(version)
		if !ok {
			stream.send(watch.Error, statusOf(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d", version))))
			return
		}
		for _, c := range changes {
			version = c.version
			if kind, object := c.seen(r); object != nil {
				stream.send(kind, json.RawMessage(object.encoded))
			}
		}
		if stream.failed() {
			return
		}
		select {
		case <-changed:
		case <-req.Context().Done():
			return
		}
	}
}

// event is what a watch sends before the first change.
type event struct {
	kind   watch.EventType
	object any
}

// begin returns what is to be seen before the first change, and the version
// from which on changes count.
func (m *Member) begin(req *http.Request, r request) ([]event, int64, error) {
	query := req.URL.Query()
	found, version := m.store.list(r.kind.resource, r.namespace, r.selector)
	if query.Get("sendInitialEvents") != "true" {
		from := query.Get("resourceVersion")
		if from == "" || from == "0" {
			return nil, version, nil
		}
		version, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			return nil, 0, apierrors.NewBadRequest(err.Error())
		}
		return nil, version, nil
	}
	var out []event
	for _, object := range found {
		out = append(out, event{watch.Added, json.RawMessage(object.encoded)})
	}
	bookmark := metav1.PartialObjectMetadata{TypeMeta: shownAs(req, r.kind), ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.FormatInt(version, 10),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	return append(out, event{watch.Bookmark, bookmark}), version, nil
}

// stream writes the events of a watch.
type stream struct {
	out   http.ResponseWriter
	flush func() error
	err   error // the first
}

func (s *stream) send(kind watch.EventType, object any) {
	encoded, err := json.Marshal(struct {
		Type   watch.EventType `json:"type"`
		Object any             `json:"object"`
	}{kind, object})
	if err == nil {
		_, err = s.out.Write(append(encoded, '\n'))
	}
	if s.err == nil {
		s.err = err
	}
}

// failed sends what is written and reports whether nobody reads it.
func (s *stream) failed() bool { return s.err != nil || s.flush() != nil }
