package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// ErrMalformed says that a request is not one of its type.
var ErrMalformed = errors.New("the request is none of the Receiver's type")

// Event is what a request announces.
type Event struct {
	// Type is what has happened, as the sender calls it, such as "push"; empty if its type has no names for it.
	Type string
	// Repository is the path of the Git repository on its host, such as "shop/app", and Refs are the full names of the refs
	// that were pushed there, such as "refs/heads/main". Empty if the request does not say.
	Repository string
	Refs       []string
	// Payload is the body, as expressions see it; nil if it is not JSON.
	Payload any
}

// typeHeaders are the headers in which senders say what has happened.
var typeHeaders = map[string]string{
	notificationv1.GitHubReceiver:    "X-GitHub-Event",
	notificationv1.GitLabReceiver:    "X-Gitlab-Event",
	notificationv1.BitbucketReceiver: "X-Event-Key",
	notificationv1.NexusReceiver:     "X-Nexus-Webhook-Id",
	notificationv1.CDEventsReceiver:  "Ce-Type",
}

// Read returns what a request to a Receiver of a type announces. Errors: ErrMalformed.
func Read(kind string, r Request) (Event, error) {
	var out Event
	body := r.Body
	if kind == notificationv1.GitHubReceiver && strings.HasPrefix(r.Header("Content-Type"), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return Event{}, fmt.Errorf("%w: its form cannot be read", ErrMalformed)
		}
		if !form.Has("payload") {
			return Event{}, fmt.Errorf("%w: its content type says form, and it has no field payload: send application/json", ErrMalformed)
		}
		body = []byte(form.Get("payload"))
	}
	if err := json.Unmarshal(body, &out.Payload); err != nil && !slices.Contains(withoutJSON, kind) {
		return Event{}, fmt.Errorf("%w: its body is not JSON", ErrMalformed)
	}
	if header := typeHeaders[kind]; header != "" {
		if out.Type = r.Header(header); out.Type == "" {
			return Event{}, fmt.Errorf("%w: the header %s is missing", ErrMalformed, header)
		}
	}
	if read := readers[kind]; read != nil {
		if err := read(body, &out); err != nil {
			return Event{}, err
		}
	}
	return out, nil
}

// withoutJSON are the types that take any body.
var withoutJSON = []string{
	notificationv1.GenericReceiver, notificationv1.GenericHMACReceiver, notificationv1.GenericOIDCReceiver, notificationv1.HarborReceiver, notificationv1.CDEventsReceiver,
}

// readers fill in what the body of a type says, and refuse bodies that are not of it.
var readers = map[string]func(body []byte, out *Event) error{
	notificationv1.GitHubReceiver:    push,
	notificationv1.GitLabReceiver:    push,
	notificationv1.BitbucketReceiver: bitbucket,
	notificationv1.HarborReceiver: func(body []byte, out *Event) error {
		out.Type = field(body, "type")
		return nil
	},
	notificationv1.DockerHubReceiver: needs("repository.repo_url", "push_data.tag"),
	notificationv1.QuayReceiver:      needs("docker_url"),
	notificationv1.NexusReceiver:     needs("repositoryName"),
	notificationv1.ACRReceiver:       named("action", "target.repository"),
	notificationv1.GCRReceiver:       gcr,
}

// push reads the refs of a push as GitHub, Gitea and GitLab send it. What is no push has none.
func push(body []byte, out *Event) error {
	var in struct {
		Ref        string `json:"ref"`
		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
		Project struct {
			Path string `json:"path_with_namespace"`
		} `json:"project"`
	}
	if json.Unmarshal(body, &in) != nil || !strings.HasPrefix(in.Ref, "refs/") {
		return nil //nolint:nilerr // it tells of something else
	}
	if out.Repository = in.Repository.FullName; out.Repository == "" {
		out.Repository = in.Project.Path
	}
	out.Refs = []string{in.Ref}
	return nil
}

// bitbucket reads the refs of a push as Bitbucket's data centre sends it.
func bitbucket(body []byte, out *Event) error {
	var in struct {
		Changes []struct {
			Ref struct {
				ID string `json:"id"`
			} `json:"ref"`
		} `json:"changes"`
		Repository struct {
			Slug    string `json:"slug"`
			Project struct {
				Key string `json:"key"`
			} `json:"project"`
		} `json:"repository"`
	}
	if json.Unmarshal(body, &in) != nil || in.Repository.Slug == "" || in.Repository.Project.Key == "" {
		return nil //nolint:nilerr // it tells of something else
	}
	out.Repository = in.Repository.Project.Key + "/" + in.Repository.Slug
	for _, c := range in.Changes {
		if !strings.HasPrefix(c.Ref.ID, "refs/") {
			out.Refs = nil
			return nil
		}
		out.Refs = append(out.Refs, c.Ref.ID)
	}
	return nil
}

// gcr reads what Pub/Sub carries: the registry's message in base64.
func gcr(body []byte, out *Event) error {
	var in struct {
		Message struct {
			Data string `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return fmt.Errorf("%w: its message cannot be read", ErrMalformed)
	}
	data, err := base64.StdEncoding.DecodeString(in.Message.Data)
	if err != nil {
		return fmt.Errorf("%w: message.data is not base64", ErrMalformed)
	}
	return named("action", "tag")(data, out)
}

// needs returns a reader that refuses a body without these fields.
func needs(fields ...string) func([]byte, *Event) error {
	return func(body []byte, _ *Event) error {
		for _, name := range fields {
			if field(body, name) == "" {
				return fmt.Errorf("%w: it has no %s", ErrMalformed, name)
			}
		}
		return nil
	}
}

// named returns needs for a body with a field that says what has happened.
func named(name string, fields ...string) func([]byte, *Event) error {
	return func(body []byte, out *Event) error {
		out.Type = field(body, name)
		return needs(append([]string{name}, fields...)...)(body, out)
	}
}

// field returns a text in JSON by its path, such as "push_data.tag"; empty if there is none.
func field(body []byte, path string) string {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return ""
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, _ := value.(string)
	return text
}

// mostName is how much is shown of what a sender calls an event, in characters.
const mostName = 60

// Wanted reports whether a Receiver with a list of events wants one, and why not. Without a list it wants all, and what
// has no name is always wanted.
func (e Event) Wanted(events []string) (why string, wanted bool) {
	if len(events) == 0 || e.Type == "" || slices.ContainsFunc(events, func(name string) bool { return strings.EqualFold(name, e.Type) }) {
		return "", true
	}
	return fmt.Sprintf("the event %q is not among spec.events: nothing is looked at", excerpt.Runes(excerpt.Line(e.Type), mostName)), false
}
