package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// errTooMuch says that the lists of all clusters together exceed the hub's limit.
var errTooMuch = fmt.Errorf("the clusters list more than %d MiB: ask for a namespace, by a label, or for one cluster", mostAnswers>>20)

// list answers with the objects of all clusters that may be listed. Those that
// could not be asked are named in warnings.
func (p everywhere) list(w http.ResponseWriter, req *http.Request, path string, answer Responder) {
	query, err := url.ParseQuery(queryOf(req))
	if err != nil {
		answer.Error(badRequest(allClusters, err))
		return
	}
	for _, part := range []string{"limit", "continue", "resourceVersion", "resourceVersionMatch"} {
		query.Del(part) // they make sense for one cluster only
	}
	left := &budget{left: mostAnswers}
	answers, err := p.ask(req, path, query.Encode(), left.read)
	if err != nil {
		answer.Error(err)
		return
	}
	merged := merge{}
	for _, a := range answers {
		switch {
		case errors.Is(a.err, errTooMuch):
			answer.Error(status(allClusters, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "%v", errTooMuch))
			return
		case a.err == nil && a.code == http.StatusOK:
			a.err = merged.add(a.cluster, a.body)
		case a.err == nil:
			a.err = status(a.cluster, a.code, metav1.StatusReasonUnknown, "it answers with code %d", a.code)
		}
		if a.err != nil {
			w.Header().Add("Warning", "299 flotilla "+strconv.Quote(a.err.Error()))
		}
	}
	body, err := merged.encode()
	if err != nil {
		answer.Error(status(allClusters, http.StatusNotFound, metav1.StatusReasonNotFound, "no cluster lists this"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the caller may have hung up
}

// merge is a list made of the lists of several clusters.
type merge struct {
	head  map[string]json.RawMessage // of the first list, without its items
	items []json.RawMessage
	field string // name of the field with the items
}

// add adds a cluster's list, whole or not at all.
func (m *merge) add(cluster string, body []byte) error {
	var list map[string]json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return badGateway(cluster, "it does not answer with a list")
	}
	field := "items"
	if string(list["kind"]) == `"Table"` {
		field = "rows"
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list[field], &items); err != nil {
		return badGateway(cluster, "it does not answer with a list")
	}
	if m.head != nil && field != m.field {
		return badGateway(cluster, "it lists in another form than the others")
	}
	for i := range items {
		items[i] = from(cluster, items[i], field == "rows")
	}
	if m.head == nil {
		delete(list, field)
		list["metadata"] = json.RawMessage(`{}`) // a resource version of one cluster means nothing to the others
		m.head, m.field = list, field
	}
	m.items = append(m.items, items...)
	return nil
}

// from records on an object which cluster it comes from. What is no object stays as it
// is.
func from(cluster string, raw json.RawMessage, row bool) json.RawMessage {
	var item map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // large numbers keep their digits
	if decoder.Decode(&item) != nil {
		return raw
	}
	obj := item
	if row {
		obj, _ = item["object"].(map[string]any)
	}
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		return raw
	}
	annotations, ok := meta["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	annotations[clusterv1alpha1.QuerySourceAnnotationKey] = cluster
	noted, err := json.Marshal(item)
	if err != nil {
		return raw
	}
	return noted
}

// encode returns the list; an error if no cluster has answered with one.
func (m *merge) encode() ([]byte, error) {
	if m.head == nil {
		return nil, errors.New("no list")
	}
	items := m.items
	if items == nil {
		items = []json.RawMessage{}
	}
	encoded, err := json.Marshal(items)
	if err != nil {
		return nil, fmt.Errorf("encode the list: %w", err)
	}
	m.head[m.field] = encoded
	return json.Marshal(m.head)
}

// hub answers requests that are for no resource, such as discovery, from the hub itself, as
// the caller.
func (p everywhere) hub(w http.ResponseWriter, req *http.Request, path string, answer Responder) {
	user, _ := genericapirequest.UserFrom(req.Context())
	if _, err := callerOf(user); err != nil {
		answer.Error(status(allClusters, http.StatusForbidden, metav1.StatusReasonForbidden, "%v", err))
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		answer.Error(status(allClusters, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "what is no resource can only be read in all clusters at once"))
		return
	}
	config := rest.CopyConfig(p.opts.Hub())
	config.Impersonate = rest.ImpersonationConfig{UserName: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups(), Extra: user.GetExtra()}
	own, err := rest.HTTPWrappersForConfig(config, config.Transport)
	if err != nil {
		answer.Error(status(allClusters, http.StatusInternalServerError, metav1.StatusReasonInternalError, "reach the control plane: %v", err))
		return
	}
	at, err := url.Parse(config.Host + path)
	if err != nil {
		answer.Error(badRequest(allClusters, err))
		return
	}
	at.RawQuery = queryOf(req)
	defer recoverAbort(req.Context())
	(&httputil.ReverseProxy{
		Transport:  final{own, &p.buffers},
		BufferPool: &p.buffers,
		ErrorLog:   log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = at, ""
			strip(r.Out.Header)
		},
		ModifyResponse: func(resp *http.Response) error {
			for header := range resp.Header {
				if _, set := w.Header()[header]; set {
					delete(resp.Header, header)
				}
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			answer.Error(status(allClusters, http.StatusInternalServerError, metav1.StatusReasonInternalError, "ask the control plane: %v", err))
		},
	}).ServeHTTP(w, req)
}
