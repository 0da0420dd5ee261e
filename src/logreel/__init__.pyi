from typing import Any

from logreel import fleet as fleet
from logreel._version import __version__ as __version__
from logreel.errors import DamagedError as DamagedError
from logreel.errors import DefinitionError as DefinitionError
from logreel.errors import FileChangedError as FileChangedError
from logreel.errors import Finding as Finding
from logreel.errors import IncompleteOutputError as IncompleteOutputError
from logreel.errors import LogError as LogError
from logreel.errors import MissingDependencyError as MissingDependencyError
from logreel.errors import NotFoundError as NotFoundError
from logreel.errors import Problem as Problem
from logreel.errors import TopicError as TopicError
from logreel.errors import UnknownFormatError as UnknownFormatError
from logreel.errors import UnreachableError as UnreachableError
from logreel.errors import UnsupportedError as UnsupportedError
from logreel.errors import UsageError as UsageError
from logreel.index.message_index import MessageIndex as MessageIndex
from logreel.layout.layout import Layout as Layout
from logreel.limits import Limits as Limits
from logreel.log.log import Channel as Channel
from logreel.log.log import Log as Log
from logreel.log.log import Message as Message
from logreel.log.scan import Schema as Schema
from logreel.meaning.notes import Note as Note
from logreel.meaning.notes import Notes as Notes
from logreel.meaning.notes import notes as notes
from logreel.meaning.transforms import RigidTransforms as RigidTransforms
from logreel.meaning.transforms import Transforms as Transforms
from logreel.meaning.transforms import transforms as transforms
from logreel.ops import definitions as definitions
from logreel.ops.edit.edit import edit as edit
from logreel.ops.health.health import Health as Health
from logreel.ops.health.health import health as health
from logreel.ops.inspect.check import check as check
from logreel.ops.inspect.compare import Comparison as Comparison
from logreel.ops.inspect.compare import compare as compare
from logreel.ops.inspect.contract_file import LearnedContract as LearnedContract
from logreel.ops.inspect.diff import diff as diff
from logreel.ops.inspect.du import Usage as Usage
from logreel.ops.inspect.du import du as du
from logreel.ops.inspect.info import info as info
from logreel.ops.inspect.learn import learn_contract as learn_contract
from logreel.ops.inspect.params import params as params
from logreel.ops.inspect.stats import stats as stats
from logreel.ops.inspect.summary import Summary as Summary
from logreel.ops.inspect.summary import summary as summary
from logreel.ops.migrate import migrate as migrate
from logreel.ops.query.align import align as align
from logreel.ops.query.polars import scan_polars as scan_polars
from logreel.ops.query.sql import sql as sql
from logreel.ops.record import Feed as Feed
from logreel.ops.record import LiveSource as LiveSource
from logreel.ops.record import Ring as Ring
from logreel.ops.record import live_source as live_source
from logreel.ops.record import record as record
from logreel.ops.replay import Player as Player
from logreel.ops.replay import Sink as Sink
from logreel.ops.replay import play as play
from logreel.ops.rewrite.proof import verify as verify
from logreel.ops.rewrite.recover import recover as recover
from logreel.ops.rewrite.slice import slice_log, sort_log
from logreel.ops.rewrite.split import split as split
from logreel.ops.selection import Around as Around
from logreel.ops.selection import Selection as Selection
from logreel.outputs.ci import CiResult as CiResult
from logreel.outputs.ci import ci as ci
from logreel.outputs.convert import convert as convert
from logreel.outputs.dataset import DatasetWritten as DatasetWritten
from logreel.outputs.dataset import dataset as dataset
from logreel.outputs.media.arrays import clouds as clouds
from logreel.outputs.media.arrays import pictures as pictures
from logreel.outputs.media.arrays import positions as positions
from logreel.outputs.media.geotag import geotag as geotag
from logreel.outputs.merge_formats import merge as merge
from logreel.outputs.page.plot import Plot as Plot
from logreel.outputs.page.plot import plot as plot
from logreel.outputs.page.report import Report as Report
from logreel.outputs.page.report import report as report
from logreel.outputs.serve import Service as Service
from logreel.outputs.sinks import sink as sink
from logreel.outputs.view import Viewer as Viewer
from logreel.outputs.view import view as view
from logreel.registry.format import Format as Format
from logreel.registry.open import open_log
from logreel.registry.open_growing import open_growing as open_growing
from logreel.registry.registry import formats
from logreel.write.writer import Writer as Writer
from logreel.write.writer import create as create

__all__: list[str]
open = open_log  # noqa: A001
slice = slice_log  # noqa: A001
sort = sort_log
known_formats = formats

def __getattr__(name: str) -> Any: ...
