// Package kgo declares what docs/other-languages.md uses of github.com/twmb/franz-go/pkg/kgo, so that
// the program there can be type-checked without fetching and compiling a Kafka client.
package kgo

import "context"

type (
	Client         struct{}
	Fetches        []struct{}
	IsolationLevel struct{}
	Opt            interface{ apply() }
	ProduceResults []struct{}
)

type Record struct {
	Key, Value []byte
	Topic      string
}

func NewClient(...Opt) (*Client, error)      { panic("declared only") }
func SeedBrokers(...string) Opt              { panic("declared only") }
func ConsumeTopics(...string) Opt            { panic("declared only") }
func FetchIsolationLevel(IsolationLevel) Opt { panic("declared only") }
func ReadCommitted() IsolationLevel          { panic("declared only") }
func (*Client) Close()                       {}
func (*Client) PollFetches(context.Context) Fetches {
	panic("declared only")
}
func (*Client) ProduceSync(context.Context, ...*Record) ProduceResults {
	panic("declared only")
}
func (ProduceResults) FirstErr() error { panic("declared only") }
func (Fetches) Err() error             { panic("declared only") }
func (Fetches) Records() []*Record     { panic("declared only") }
