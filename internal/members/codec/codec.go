package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Clients makes dynamic clients for a member, which differ in how they send.
type Clients struct{ config *rest.Config }

// New returns what makes the clients of the member that is reached so.
func New(member *rest.Config) (*Clients, error) {
	config := dynamic.ConfigFor(member)
	config.GroupVersion = nil
	config.APIPath = "/apis" // of no account: these clients name whole paths
	codecs, err := newCodecs(config.NegotiatedSerializer)
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = codecs
	return &Clients{config}, nil
}

// Client returns a client that sends by http. It is cheap.
func (c *Clients) Client(http *http.Client) (*dynamic.DynamicClient, error) {
	requests, err := rest.UnversionedRESTClientForConfigAndClient(c.config, http)
	if err != nil {
		return nil, err
	}
	return dynamic.New(requests), nil
}

// codecs are those of the dynamic client, but for how JSON is read.
type codecs struct {
	runtime.NegotiatedSerializer
	types []runtime.SerializerInfo
	json  runtime.Serializer
	known map[string]bool // the kinds that are not unstructured
}

func newCodecs(of runtime.NegotiatedSerializer) (*codecs, error) {
	c := &codecs{NegotiatedSerializer: of, types: slices.Clone(of.SupportedMediaTypes()), known: map[string]bool{}}
	for i, info := range c.types {
		if info.MediaType != runtime.ContentTypeJSON || info.StreamSerializer == nil {
			continue
		}
		stream := *info.StreamSerializer
		_, kind, err := stream.Serializer.Decode([]byte(`{"type":"ADDED","object":{}}`), nil, &metav1.WatchEvent{})
		if err != nil {
			return nil, fmt.Errorf("read a watch: %w", err)
		}
		stream.Serializer = events{stream.Serializer, *kind}
		c.types[i].StreamSerializer, c.json = &stream, info.Serializer
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for kind := range scheme.AllKnownTypes() {
		c.known[kind.Kind] = true
	}
	return c, nil
}

// SupportedMediaTypes returns what the codecs read.
func (c *codecs) SupportedMediaTypes() []runtime.SerializerInfo { return c.types }

// DecoderToVersion returns the decoder of answers, and of the objects of events.
func (c *codecs) DecoderToVersion(of runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	decoder := c.NegotiatedSerializer.DecoderToVersion(of, version)
	if of != runtime.Decoder(c.json) {
		return decoder
	}
	return objects{decoder, c.known}
}

// objects reads unstructured objects, and all else by other.
type objects struct {
	other runtime.Decoder
	known map[string]bool
}

// Decode reads an object, into one that is given or a new one.
func (o objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, whole := into.(*unstructured.Unstructured)
	if defaults != nil || into != nil && (!whole || object == nil) {
		return o.other.Decode(data, defaults, into)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return o.other.Decode(data, nil, into)
	}
	kind, ok := kindOf(content)
	if !ok || into == nil && o.known[kind.Kind] {
		return o.other.Decode(data, nil, into)
	}
	if into == nil {
		object = &unstructured.Unstructured{}
	}
	object.Object = content
	return object, &kind, nil
}

// kindOf returns the kind of an object. ok is false where another reader may understand it in
// another way, as one does to whom Kind is kind.
func kindOf(content map[string]any) (kind schema.GroupVersionKind, ok bool) {
	for key := range content {
		for _, name := range []string{"kind", "apiVersion"} {
			if len(key) == len(name) && key != name && strings.EqualFold(key, name) {
				return kind, false
			}
		}
	}
	version, _ := content["apiVersion"].(string)
	name, _ := content["kind"].(string)
	if version == "" || name == "" {
		return kind, false
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Version == "" {
		return kind, false
	}
	return gv.WithKind(name), true
}

// events reads the events of watches.
type events struct {
	runtime.Serializer
	kind schema.GroupVersionKind
}

// How a server writes an event: the type in between.
var (
	begin  = []byte(`{"type":"`)
	middle = []byte(`","object":`)
)

// Decode reads an event; its object stays as it is.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok || event == nil || defaults != nil {
		return e.Serializer.Decode(data, defaults, into)
	}
	rest, begins := bytes.CutPrefix(data, begin)
	name, rest, divided := bytes.Cut(rest, middle)
	raw, ends := bytes.CutSuffix(rest, []byte("}"))
	if !begins || !divided || !ends || !capitals(name) || !object(raw) {
		return e.Serializer.Decode(data, nil, into)
	}
	event.Type = string(name)
	event.Object.Raw = append(event.Object.Raw[:0], raw...) // data is used again
	kind := e.kind
	return event, &kind, nil
}

func capitals(name []byte) bool {
	return len(name) > 0 && !bytes.ContainsFunc(name, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// object reports whether data is one object, and nothing besides.
func object(data []byte) bool {
	return len(data) > 1 && data[0] == '{' && data[len(data)-1] == '}' && json.Valid(data)
}
