package message

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// sender is who chats say a message is of.
func (p Provider) sender() string {
	if p.Username != "" {
		return p.Username
	}
	return "flotilla"
}

// emoji shows the severity to people.
func emoji(e alerting.Event) string {
	if e.Failed() {
		return "🚨"
	}
	return "ℹ️"
}

// values returns the metadata with values that fit beside a message.
func values(e alerting.Event) []alerting.Fact {
	facts := e.Facts()
	for i := range facts {
		facts[i].Value = excerpt.Bytes(excerpt.Line(facts[i].Value), mostFact)
	}
	return facts
}

// slackText leaves nothing in a text that Slack would take for a link or a mention.
func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// slack posts to an incoming webhook, or, with a token, to chat.postMessage.
func slack(p Provider, e alerting.Event, r *Request) (any, error) {
	if token := p.key("token"); token != "" {
		if p.Channel == "" {
			return nil, fmt.Errorf("%w: with a token it needs spec.channel", ErrProvider)
		}
		r.Header["Authorization"] = "Bearer " + token
	}
	color := map[bool]string{true: "danger", false: "good"}[e.Failed()]
	fields := []map[string]any{}
	for _, f := range values(e) {
		fields = append(fields, map[string]any{"title": slackText(f.Key), "value": slackText(f.Value), "short": false})
	}
	body := map[string]any{
		"username": p.sender(), "unfurl_links": false, "unfurl_media": false, "parse": "none", "link_names": false,
		"attachments": []map[string]any{{
			"color": color, "author_name": slackText(e.Name()), "text": slackText(e.Message), "fallback": slackText(e.Name() + ": " + excerpt.Line(e.Message)),
			"mrkdwn_in": []string{}, "fields": fields,
		}},
	}
	if p.Channel != "" {
		body["channel"] = p.Channel
	}
	return body, nil
}

// Discord's limits, in characters.
const (
	discordName   = 256
	discordText   = 2800
	discordFields = 10
	discordValue  = 200
)

// gap keeps backticks from ending a block.
const gap = "\u200b"

// discord posts an embed, in which nobody is ever mentioned, with foreign texts as code.
func discord(p Provider, e alerting.Event, r *Request) (any, error) {
	r.URL.Path, r.URL.RawPath = strings.TrimSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/slack"), ""
	color := map[bool]int{true: 0xcc0000, false: 0x2e8b57}[e.Failed()]
	fields := []map[string]any{}
	for _, f := range values(e)[:min(len(e.Metadata), discordFields)] {
		value := strings.ReplaceAll(excerpt.Runes(f.Value, discordValue), "`", "'")
		if value == "" {
			value = " "
		}
		fields = append(fields, map[string]any{"name": "`" + strings.ReplaceAll(f.Key, "`", "'") + "`", "value": "`" + value + "`"})
	}
	text := strings.ReplaceAll(excerpt.Runes(e.Message, discordText), "`", "`"+gap)
	return map[string]any{
		"username": p.sender(), "allowed_mentions": map[string]any{"parse": []string{}},
		"embeds": []map[string]any{{
			"title": excerpt.Runes(emoji(e)+" "+e.Name(), discordName), "description": "```\n" + text + "\n```", "color": color,
			"timestamp": e.Timestamp.UTC().Format(time.RFC3339), "fields": fields,
		}},
	}, nil
}

// run is a text in a card that is shown as it is: text blocks would read it as Markdown.
func run(text string, more map[string]any) map[string]any {
	inline := map[string]any{"type": "TextRun", "text": text}
	for key, value := range more {
		inline[key] = value
	}
	return map[string]any{"type": "RichTextBlock", "inlines": []any{inline}}
}

// teams posts an adaptive card to a workflow.
func teams(_ Provider, e alerting.Event, _ *Request) (any, error) {
	color := map[bool]string{true: "attention", false: "good"}[e.Failed()]
	card := []any{run(emoji(e)+" "+e.Name(), map[string]any{"weight": "bolder", "size": "medium", "color": color}), run(e.Message, map[string]any{"fontType": "monospace"})}
	for _, f := range values(e) {
		card = append(card, run(f.Key+": "+f.Value, map[string]any{"isSubtle": true}))
	}
	return map[string]any{
		"type": "message",
		"attachments": []any{map[string]any{
			"contentType": "application/vnd.microsoft.card.adaptive",
			"content": map[string]any{
				"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
				"body": card, "msteams": map[string]any{"width": "Full"},
			},
		}},
	}, nil
}

// plain is the whole message as text.
func plain(e alerting.Event) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n%s", emoji(e), e.Name(), e.Message)
	for _, f := range values(e) {
		fmt.Fprintf(&out, "\n%s: %s", f.Key, f.Value)
	}
	return out.String()
}

// matrix sends plain text to a room. A message that is sent again has the same number, so that it is there once.
func matrix(p Provider, e alerting.Event, r *Request) (any, error) {
	token, err := p.token()
	if err != nil {
		return nil, err
	}
	if err := p.room(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"msgtype": "m.text", "body": plain(e), "m.mentions": map[string]any{}})
	if err != nil {
		return nil, fmt.Errorf("write the message: %w", err)
	}
	sum := sha256.Sum256(append(body, e.Timestamp.UTC().Format(time.RFC3339Nano)...))
	r.Method, r.Header["Authorization"] = "PUT", "Bearer "+token
	r.URL = r.URL.JoinPath("_matrix/client/v3/rooms", url.PathEscape(p.Channel), "send/m.room.message", hex.EncodeToString(sum[:16]))
	return json.RawMessage(body), nil
}

// room returns an error for a channel that is not the ID of a room.
func (p Provider) room() error {
	if strings.HasPrefix(p.Channel, "!") {
		return nil
	}
	return fmt.Errorf("%w: it needs spec.channel, the ID of a room such as !abc:matrix.org", ErrProvider)
}

// googleChat posts a card, whose texts are HTML.
func googleChat(_ Provider, e alerting.Event, _ *Request) (any, error) {
	widgets := []any{map[string]any{"textParagraph": map[string]any{"text": html.EscapeString(e.Message)}}}
	for _, f := range values(e) {
		widgets = append(widgets, map[string]any{"decoratedText": map[string]any{"topLabel": html.EscapeString(f.Key), "text": html.EscapeString(f.Value), "wrapText": true}})
	}
	return map[string]any{"cardsV2": []any{map[string]any{
		"cardId": "event",
		"card": map[string]any{
			"header":   map[string]any{"title": emoji(e) + " " + html.EscapeString(e.Name()), "subtitle": html.EscapeString(e.Reason)},
			"sections": []any{map[string]any{"widgets": widgets}},
		},
	}}}, nil
}
